# frozen_string_literal: true

require "digest"
require "erb"
require "json"
require "uri"

# Requests to a small shop, in this process: what a Rack application does, from parsing to rendering. It needs nothing
# but the standard library, and so is the same on every Ruby.
module RackLoad
  Item = Struct.new(:id, :name, :price, :tags, :time) do
    def to_row
      { "id" => id, "name" => name, "price" => price.round(2), "tags" => tags, "time" => time.to_s }
    end
  end

  ITEMS = Array.new(400) do |id|
    Item.new(id, "Item & #{id}", id * 1.37, ["red#{id % 7}", "old#{id % 11}"], Time.at(1_700_000_000 + (id * 3600)))
  end.freeze
  ORDER = JSON.generate("items" => ITEMS.first(40).map(&:to_row)).freeze

  # What the templates are rendered with.
  class Page
    include ERB::Util

    ERB.new(<<~HTML).def_method(self, "layout(title)")
      <html><head><title><%= h(title) %></title></head><body>
      <% %w[home shop cart help].each do |name| %><a href="/<%= name %>"><%= name %></a><% end %>
      <%= yield %></body></html>
    HTML
    ERB.new(<<~HTML).def_method(self, "list(items)")
      <table><% items.each do |item| %><tr class="<%= item.id.odd? ? "odd" : "even" %>">
      <td><%= h(item.name) %></td><td><%= format("%.2f", item.price) %></td>
      <td><%= item.tags.map { |tag| h(tag) }.join(", ") %></td><td><%= item.time.strftime("%F %T") %></td>
      </tr><% end %></table>
    HTML
  end

  # Parses the query and the cookies.
  class Parser
    def initialize(app)
      @app = app
    end

    def call(env)
      env["params"] = URI.decode_www_form(env["QUERY_STRING"]).to_h
      env["cookies"] = env["HTTP_COOKIE"].to_s.split("; ").to_h { |pair| pair.split("=", 2) }
      @app.call(env)
    end
  end

  # Sets what depends on the body.
  class Headers
    def initialize(app)
      @app = app
    end

    def call(env)
      status, headers, body = @app.call(env)
      digest = body.each_with_object(Digest::MD5.new) { |part, sum| sum << part }
      headers = headers.merge("etag" => "W/\"#{digest.hexdigest}\"", "content-length" => body.sum(&:bytesize).to_s)
      [status, headers, body]
    end
  end

  # The shop.
  class App
    def call(env)
      case env["PATH_INFO"]
      when "/list" then list(env["params"])
      when "/items" then items(env["params"])
      when "/order" then order(env["body"])
      else [404, {}, []]
      end
    end

    private

    def list(params)
      found = ITEMS.select { |item| item.tags.include?(params["tag"]) }.sort_by { |item| -item.price }.first(30)
      page = Page.new
      [200, { "content-type" => "text/html" }, [page.layout("Items") { page.list(found) }]]
    end

    def items(params)
      rows = ITEMS.each_slice(20).to_a[params["page"].to_i % 20].map(&:to_row)
      [200, { "content-type" => "application/json" }, [JSON.generate("items" => rows, "total" => ITEMS.size)]]
    end

    def order(body)
      rows = JSON.parse(body)["items"].map { |row| row.transform_keys(&:to_sym) }
      sums = rows.group_by { |row| row[:tags].first }.transform_values { |group| group.sum { |row| row[:price] } }
      [201, { "content-type" => "application/json" }, [JSON.generate(sums)]]
    end
  end

  STACK = Parser.new(Headers.new(App.new))

  module_function

  # @param count [Integer] of requests
  def run(count)
    count.times do |number|
      path, query = [["/list", "tag=red#{number % 7}"], ["/items", "page=#{number % 20}"], ["/order", ""]][number % 3]
      STACK.call("PATH_INFO" => path, "QUERY_STRING" => query, "HTTP_COOKIE" => "session=a1b2c3; theme=dark",
                 "body" => (ORDER if path == "/order"))
    end
  end
end
