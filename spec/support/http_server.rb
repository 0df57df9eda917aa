# frozen_string_literal: true

require "net/http"

# Serves Rack applications with a real Puma, in this process.
module HttpServer
  module_function

  # @return [Boolean] whether Puma and Rack are installed
  def available?
    require "puma"
    require "puma/server"
    require "rack"
    true
  rescue LoadError
    false
  end

  # Yields the server's address, such as "http://127.0.0.1:40123".
  def serve(app)
    server = Puma::Server.new(app, *(Puma.const_defined?(:Events) ? [Puma::Events.new(*silence)] : []))
    port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
    server.run
    yield "http://127.0.0.1:#{port}"
  ensure
    server&.stop(true)
  end

  # Puma 5 has to be given a destination for its messages.
  def silence
    Puma::Events.instance_method(:initialize).arity.zero? ? [] : [StringIO.new, StringIO.new]
  end

  # @return [Net::HTTPResponse]
  def get(url, **headers)
    uri = URI(url)
    headers = headers.transform_keys { |name| name.to_s.tr("_", "-") }
    Net::HTTP.start(uri.host, uri.port) { |http| http.get(uri.request_uri, headers) }
  end
end
