# frozen_string_literal: true

# A worker of a cluster of Puma, which another process sends requests; each must succeed.
require "puma"
require "puma/configuration"
require "puma/launcher"
require "socket"

$stdout.sync = true
port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

def answer(port, count)
  TCPSocket.open("127.0.0.1", port) do |socket|
    socket.write("GET /#{count} HTTP/1.0\r\n\r\n")
    socket.read
  end
end

def serves?(port)
  answer(port, 1)
rescue SystemCallError
  false
end

def send_requests(port)
  count = rand(300)
  body = answer(port, count)
  fine = body.start_with?("HTTP/1.0 200") && body.scan("line").size == count
  warn "a request for #{count} lines got #{body[0, 50].inspect}" unless fine
  sleep(rand(0.002))
rescue SystemCallError => e
  warn "a request failed: #{e.message}"
end

fork do
  sleep 0.05 until serves?(port)
  Array.new(4) { Thread.new { loop { send_requests(port) } } }.each(&:join)
end

configuration = Puma::Configuration.new do |config|
  config.bind("tcp://127.0.0.1:#{port}")
  config.workers(2)
  config.threads(2, 4)
  config.app do |environment|
    count = Integer(environment["PATH_INFO"].delete_prefix("/"))
    [200, { "content-type" => "text/plain" }, Array.new(count) { |number| "line #{number}\n" }]
  end
  # The one that is attached to.
  config.on_worker_boot { |index| puts Process.pid if index.zero? }
end
# Before version 6 it logs through its events.
silent = Puma.const_defined?(:LogWriter) ? { log_writer: Puma::LogWriter.null } : { events: Puma::Events.null }
Puma::Launcher.new(configuration, **silent).run
