# frozen_string_literal: true

# Four threads answer the requests of four others.
require "socket"

$stdout.sync = true
server = TCPServer.new("127.0.0.1", 0)
4.times do
  Thread.new do
    loop do
      client = server.accept
      count = Integer(client.gets)
      client.write(Array.new(count) { |number| "line #{number}\n" }.join)
      client.close
    end
  end
end
4.times do
  Thread.new do
    loop do
      count = rand(1000)
      lines = TCPSocket.open("127.0.0.1", server.addr[1]) do |socket|
        socket.puts(count)
        socket.read.lines.size
      end
      warn "a request for #{count} lines got #{lines}" unless lines == count
      sleep(rand(0.002))
    end
  rescue StandardError => e
    warn "a request failed: #{e.message}"
  end
end
puts
sleep
