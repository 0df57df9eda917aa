# frozen_string_literal: true

# Serves requests to the shop in this process, for callgrind to count: prints "ready" after warming up, waits for a
# line, serves VISITS visits of ten requests, prints "served", and waits again.
#
#   ruby shop_requests.rb VARIANT VISITS    # one of Variants, by its name

require_relative "../../spec/apps/shop/config/environment"
require_relative "../../spec/apps/shop/visitors"
require "rack/mock"
require_relative "variants"

# Replaces the connection to a server.
class InProcess
  # The parts of a response that a visitor uses.
  Response = Struct.new(:code, :headers, :body) do
    def [](name)
      headers[name]
    end
  end

  def start
    yield
  end

  def request(request)
    environment = { method: request.method, "HTTP_COOKIE" => request["Cookie"], input: request.body.to_s,
                    "CONTENT_TYPE" => request["Content-Type"], "HTTP_HOST" => "127.0.0.1" }
    status, headers, body = Rails.application.call(Rack::MockRequest.env_for(request.path, environment.compact))
    text = +""
    body.each { |part| text << part }
    body.close if body.respond_to?(:close)
    Response.new(status, headers, text)
  end
end

# A visitor without a network.
class LocalVisitor < Visitor
  def initialize(random)
    super(0, random) { nil }
    @http = InProcess.new
  end
end

# Under callgrind the program is slower by about this factor; in a frame that is longer by it as much happens.
SLOWDOWN = 30
VARIANT, visits = ARGV
VARIANTS = Variants.new(seed: 1, window_frame: 0.03 * SLOWDOWN)
VARIANTS.on(VARIANT.to_sym)
visitor = LocalVisitor.new(Random.new(1))
3.times { visitor.visit }
GC.start
# The app's log output may still be in the buffer.
puts "ready"
$stdout.flush
$stdin.gets
Integer(visits).times { visitor.visit }
puts "served"
$stdout.flush
$stdin.gets
# Fails unless the right thing was on.
VARIANTS.off(VARIANT.to_sym)
exit!(true)
