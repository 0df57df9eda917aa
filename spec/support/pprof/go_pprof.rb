# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

module Pprof
  # Runs `go tool pprof` on profiles.
  module GoPprof
    Result = Struct.new(:stdout, :stderr, :status) do
      def success?
        status.success?
      end
    end

    module_function

    def available?
      return @available unless @available.nil?

      @available = system("go", "version", out: File::NULL, err: File::NULL) ? true : false
    end

    # @param profile [String, #pprof_data] the gzipped bytes
    # @param flags [Array<String>] such as "-top"
    # @param base [String, #pprof_data, nil] what to subtract, as -diff_base
    # @return [Result]
    def run(profile, *flags, base: nil)
      in_directory do |directory|
        flags += ["-diff_base=#{file(directory, "base", base)}"] if base
        [*flags, file(directory, "profile", profile)]
      end
    end

    # @param url [String] where the profile is
    # @param flags [Array<String>] such as "-top"
    # @return [Result]
    def fetch(url, *flags)
      in_directory { [*flags, url] }
    end

    # Runs it with the arguments that the block returns.
    def in_directory
      Dir.mktmpdir("gopprof") do |directory|
        # Its own home and temporary directory: otherwise it reports where it saves profiles, or that they are missing.
        environment = { "HOME" => directory, "PPROF_TMPDIR" => directory, "TMPDIR" => directory, "GOFLAGS" => nil,
                        "GOCACHE" => File.join(Dir.tmpdir, "memprofiler-go-cache") }
        refuse_telemetry(directory)
        Result.new(*Open3.capture3(environment, "go", "tool", "pprof", *yield(directory), chdir: directory))
      end
    end

    # From Go 1.23 on a process that goes on for longer would count events in the home directory.
    def refuse_telemetry(home)
      settings = File.join(home, ".config", "go", "telemetry")
      FileUtils.mkdir_p(settings)
      File.write(File.join(settings, "mode"), "off")
    end

    def file(directory, name, profile)
      bytes = profile.respond_to?(:pprof_data) ? profile.pprof_data : profile
      File.join(directory, "#{name}.pprof").tap { |path| File.binwrite(path, bytes) }
    end
  end
end
