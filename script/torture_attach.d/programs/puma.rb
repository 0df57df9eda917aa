# frozen_string_literal: true

# Puma answers requests of four threads, each of which must succeed.
require "puma"
require "puma/server"
require "socket"

$stdout.sync = true
application = lambda do |environment|
  count = Integer(environment["PATH_INFO"].delete_prefix("/"))
  [200, { "content-type" => "text/plain" }, Array.new(count) { |number| "line #{number}\n" }]
end
# Before version 6 it logs through its events.
events = Puma.const_defined?(:LogWriter) ? nil : Puma::Events.strings
server = Puma::Server.new(application, events, { min_threads: 2, max_threads: 4 })
port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
running = server.run

4.times do
  Thread.new do
    loop do
      count = rand(300)
      body = TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("GET /#{count} HTTP/1.0\r\n\r\n")
        socket.read
      end
      fine = body.start_with?("HTTP/1.0 200") && body.scan("line").size == count
      warn "a request for #{count} lines got #{body[0, 50].inspect}" unless fine
      sleep(rand(0.002))
    end
  rescue StandardError => e
    warn "a request failed: #{e.message}"
  end
end
puts
running.join
