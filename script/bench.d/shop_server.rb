# frozen_string_literal: true

require "English"
require "fileutils"
require "json"
require "socket"
require_relative "report"

module Bench
  # The demo app under Puma, with a profiler that can be switched on and off.
  class ShopServer
    SHOP = File.join(ROOT, "spec/apps/shop")
    SWITCH = File.join(__dir__, "switch.rb")
    PATIENCE = 60

    # The environment that the app needs.
    def self.environment(directory)
      { "RAILS_ENV" => "production", "PORT" => "0", "DATABASE_URL" => "sqlite3:#{directory}/shop.sqlite3" }
    end

    # @param hooks [String] where {EmptyHooks} are
    def initialize(directory, hooks)
      @directory = directory
      @hooks = hooks
      @socket = File.join(directory, "switch")
    end

    # Creates the database.
    def prepare
      spawn({}, "bin/setup")
      wait_for("the database") { exited? }
      raise "bin/setup failed; #{excerpt}" unless $CHILD_STATUS.success?
    end

    # Serves while the block runs.
    #
    # @param resumed [Boolean, nil] whether the profiler is only stopped while it is off
    def serve(resumed: false)
      FileUtils.rm_f([log, @socket])
      options = { "RUBYOPT" => "-I#{File.join(ROOT, "lib")} -I#{@hooks} -r#{SWITCH}", "SWITCH_SOCKET" => @socket,
                  "SWITCH_FOLDER" => @directory, "SWITCH_RESUMED" => ("1" if resumed) }
      spawn(options, "puma")
      wait_for("Puma") { exited? || port }
      raise "Puma has exited; #{excerpt}" unless @pid

      @connection = UNIXSocket.new(@socket)
      yield self
    ensure
      @connection&.close
      stop
    end

    def port
      File.read(log)[%r{Listening on http://127\.0\.0\.1:(\d+)}, 1]
    end

    # Sends {Switch} a command.
    def send_command(command)
      @connection.puts(command)
      JSON.parse(@connection.gets || raise("the server has not answered; #{excerpt}"), symbolize_names: true)
    end

    private

    def log
      File.join(@directory, "puma.log")
    end

    def spawn(options, *command)
      environment = self.class.environment(@directory).merge(options)
      @pid = Process.spawn(environment, *command, chdir: SHOP, in: File::NULL, out: [log, "a"], err: %i[child out])
    end

    # TERM asks Puma to finish its requests and exit.
    def stop
      return unless @pid

      Process.kill(:TERM, @pid)
      wait_for("Puma's end") { exited? }
    ensure
      Process.kill(:KILL, @pid) if @pid
    end

    def exited?
      @pid = nil if Process.wait(@pid, Process::WNOHANG)
      @pid.nil?
    end

    def excerpt
      "#{log} ends with:\n#{File.readlines(log).last(20).join}"
    end

    def wait_for(what)
      deadline = Bench.clock + PATIENCE
      until yield
        raise "waited #{PATIENCE} s for #{what}; #{excerpt}" if Bench.clock > deadline

        sleep 0.1
      end
    end
  end
end
