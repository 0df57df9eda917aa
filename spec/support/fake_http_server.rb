# frozen_string_literal: true

require "socket"
require "uri"

# A server that records its requests, and gives configured responses: a status and headers; a String, after which it
# hangs; :hang for none at all; or :drip for headers that do not end. The last one applies to all further requests.
class FakeHttpServer
  Request = Struct.new(:verb, :path, :query, :headers, :body, :at)

  attr_reader :requests

  def self.run(*answers)
    server = new(answers)
    yield server
  ensure
    server&.close
  end

  def initialize(answers)
    @answers = answers
    @requests = []
    @sockets = []
    @server = TCPServer.new("127.0.0.1", 0)
    @thread = Thread.new { loop { serve(@server.accept) } }
    @thread.report_on_exception = false
  end

  def url
    "http://127.0.0.1:#{@server.addr[1]}"
  end

  def close
    @thread.kill.join
    [*@sockets, @server].each(&:close)
  end

  private

  def serve(socket)
    @sockets << socket
    request = read(socket)
    status, headers = @answers.size > 1 ? @answers.shift : @answers.first
    @requests << request
    return if status == :hang
    return drip(socket) if status == :drip
    return socket.write(status) if status.is_a?(String)

    headers = { "Content-Length" => 4, "Connection" => "close", **headers.to_h }
    lines = ["HTTP/1.1 #{status} So", *headers.map { |pair| pair.join(": ") }]
    socket.write("#{lines.join("\r\n")}\r\n\r\nbody")
    socket.close
  rescue SystemCallError, IOError
    nil
  end

  def drip(socket)
    socket.write("HTTP/1.1 200 So\r\nX-Drops: ")
    loop { [socket.write("."), sleep(0.01)] }
  end

  def read(socket)
    verb, target, = socket.readline.split
    headers = {}
    while (line = socket.readline.chomp) != ""
      name, value = line.split(": ", 2)
      headers[name.downcase] = value
    end
    path, query = target.split("?", 2)
    body = socket.read(headers["content-length"].to_i)
    Request.new(verb, path, URI.decode_www_form(query.to_s).to_h, headers, body,
                Process.clock_gettime(Process::CLOCK_MONOTONIC))
  end
end
