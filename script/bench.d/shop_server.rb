# frozen_string_literal: true

require "English"
require "etc"
require "fileutils"
require_relative "report"

module Bench
  # The demo app under Puma, with or without the profiler, which the gem's wrapper brings in.
  class ShopServer
    SHOP = File.join(ROOT, "spec/apps/shop")
    WRAPPER = File.join(ROOT, "exe/ruby_memprofiler_pprof_profile")
    PATIENCE = 60

    def initialize(directory)
      @directory = directory
      @environment = {
        "RAILS_ENV" => "production", "PORT" => "0", "DATABASE_URL" => "sqlite3:#{directory}/shop.sqlite3",
        "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "0.01", "RUBY_MEMPROFILER_PPROF_INTERVAL" => "30",
        "RUBY_MEMPROFILER_PPROF_FILE_PATTERN" => "#{directory}/mem-%{pid}-%{isotime}.pprof"
      }
    end

    # Makes the database.
    def prepare
      spawn("bin/setup")
      wait_for("the database") { exited? }
      raise "bin/setup failed; #{excerpt}" unless $CHILD_STATUS.success?
    end

    # Serves while the block runs.
    def serve(profiled:)
      FileUtils.rm_f(log)
      spawn(*(WRAPPER if profiled), "puma")
      wait_for("Puma") { exited? || port }
      raise "Puma has exited; #{excerpt}" unless @pid

      yield self
    ensure
      stop
    end

    def port
      File.read(log)[%r{Listening on http://127\.0\.0\.1:(\d+)}, 1]
    end

    # User and system time so far, of all threads.
    def cpu_seconds
      # What follows the name, which is in brackets, begins with the state, field 3; the times are fields 14 and 15.
      fields = File.read("/proc/#{@pid}/stat").rpartition(")").last.split
      fields.values_at(11, 12).sum(&:to_i) / TICKS
    end

    TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f

    def resident_megabytes
      File.read("/proc/#{@pid}/status")[/^VmRSS:\s*(\d+)/, 1].to_i / 1024
    end

    def profiles
      Dir["#{@directory}/*.pprof"].size
    end

    private

    def log
      File.join(@directory, "puma.log")
    end

    def spawn(*command)
      @pid = Process.spawn(@environment, *command, chdir: SHOP, in: File::NULL, out: [log, "a"], err: %i[child out])
    end

    # TERM tells Puma to finish its requests and exit.
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
