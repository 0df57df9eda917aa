# frozen_string_literal: true

require "net/http"

# Visits the shop as a few browsers at a time would, at a steady pace as far as the shop keeps up with it:
#
#     ruby visitors.rb 3000 60    # 60 visitors, at port 3000
class Visitors
  PER_SECOND = 1.5

  # How many visitors have left, and the requests they made.
  attr_reader :gone, :requests

  # With a block more than `count` come, until it returns true of the number of those who have come.
  def initialize(port, count, at_a_time: 3, &enough)
    @port = port
    @count = count
    @enough = enough
    @come = 0
    @gone = 0
    @requests = 0
    @lock = Mutex.new
    @opened = now
    @browsers = Array.new(at_a_time) { Thread.new { browse } }
    @browsers.each { |browser| browser.report_on_exception = false }
  end

  # Waits a moment. Raises here if a request failed.
  def done?
    @browsers.all? { |browser| browser.join(0.2) }
  end

  private

  def browse
    while (number = come)
      sleep([@opened + (number / PER_SECOND) - now, 0].max)
      Visitor.new(@port, Random.new(number)) { @lock.synchronize { @requests += 1 } }.visit
      @lock.synchronize { @gone += 1 }
    end
  end

  # The number of the next visitor.
  def come
    @lock.synchronize do
      next if @come >= @count && (@enough.nil? || @enough.call(@come))

      (@come += 1) - 1
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

# Somebody who looks around and buys something, with a cookie in the browser.
class Visitor
  WORDS = %w[blue oak lamp quiet copper tent].freeze

  def initialize(port, random, &after_request)
    @http = Net::HTTP.new("127.0.0.1", port)
    @random = random
    @after_request = after_request
  end

  def visit
    @http.start do
      home = get("/")
      lists = Array.new(2) { get(pick(home.scan(%r{/products\?category=\d+}))) }
      lists += lists.map { |list| get(list[/"([^"]+)">More/, 1].gsub("&amp;", "&")) }
      buy(get(pick(pick(lists).scan(%r{/products/\d+}))))
      get("/search?q=#{pick(WORDS)}")
      get("/report")
    end
  end

  private

  def pick(things)
    things.sample(random: @random)
  end

  def buy(page)
    fields = page.scan(/<input type="hidden" name="(\w+)" value="([^"]*)"/).to_h
    send_request(Net::HTTP::Post.new("/cart").tap { |request| request.form_data = fields })
    get("/cart")
  end

  def get(path)
    send_request(Net::HTTP::Get.new(path))
  end

  def send_request(request)
    request["Cookie"] = @cookie
    response = @http.request(request)
    raise "#{request.method} #{request.path} was answered with #{response.code}" if response.code.to_i >= 400

    @cookie = response["Set-Cookie"]&.slice(/[^;]+/) || @cookie
    @after_request.call
    response.body
  end
end

if $PROGRAM_NAME == __FILE__
  visitors = Visitors.new(*ARGV.map { |argument| Integer(argument) })
  nil until visitors.done?
  puts "#{visitors.gone} visitors, #{visitors.requests} requests"
end
