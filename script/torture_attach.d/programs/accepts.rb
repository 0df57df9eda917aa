# frozen_string_literal: true

# Waits for clients that never come.
require "socket"

$stdout.sync = true
server = TCPServer.new("127.0.0.1", 0)
puts
server.accept
