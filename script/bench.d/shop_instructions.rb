# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "shop_server"

module Bench
  # Instructions per request as counted by callgrind, in one thread, without server and network.
  module ShopInstructions
    SCRIPT = File.join(__dir__, "shop_requests.rb")
    REQUESTS_PER_VISIT = 10

    # @param kind [Symbol] one of {Variants}
    # @param directory [String] where the database is
    # @param hooks [String] where {EmptyHooks} are
    # @return [Float]
    def self.per_request(kind, directory, hooks, visits:)
      # Requests take longer as the database grows, so each run needs its own.
      Dir.mktmpdir do |own|
        FileUtils.cp(Dir["#{directory}/shop.sqlite3*"], own)
        counted(kind, own, hooks, visits).fdiv(visits * REQUESTS_PER_VISIT)
      end
    end

    def self.counted(kind, directory, hooks, visits)
      command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
                 RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-I", hooks, SCRIPT, kind.to_s, visits.to_s]
      environment = ShopServer.environment(directory)
      messages = Open3.popen3(environment, *command, chdir: ShopServer::SHOP) do |stdin, stdout, stderr, process|
        reader = Thread.new { stderr.read }
        wait(stdout, "ready", reader)
        counting(process.pid) do
          stdin.puts
          wait(stdout, "served", reader)
        end
        stdin.puts
        reader.value
      end
      Integer(messages[/Collected : (\d+)/, 1])
    end
    private_class_method :counted

    # The app logs to the same stream.
    def self.wait(stdout, line, messages)
      until (found = stdout.gets)&.chomp == line
        raise "the app has exited:\n#{messages.value}" unless found
      end
    end
    private_class_method :wait

    def self.counting(pid)
      switch(pid, "on")
      yield
    ensure
      switch(pid, "off")
    end

    # callgrind takes a moment to obey; the process waits meanwhile.
    def self.switch(pid, state)
      system("callgrind_control", "--instr=#{state}", pid.to_s, %i[out err] => File::NULL, exception: true)
      sleep 2
    end
    private_class_method :switch
    private_class_method :counting
  end
end
