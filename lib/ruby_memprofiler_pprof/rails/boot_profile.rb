# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/profiled_environment"
require "ruby_memprofiler_pprof/file_pattern"

module MemprofilerPprof
  module Rails
    # What booting an app retains, by gem: boots it in a process of its own, in which every allocation is sampled, and
    # adds up what is alive after a garbage collection. What loading a file retains is allocated by the gem that calls
    # `require`, which may be Zeitwerk or Bootsnap. So "itself" says little; "all calls" shows what a gem brings along.
    # @api private
    class BootProfile
      # Runs in the other process, which inherits the environment that Bundler and Rails need.
      PROGRAM = <<~RUBY
        require "ruby_memprofiler_pprof/base"
        MemprofilerPprof.profile(out: ARGV.first, max_heap_samples: 16_777_214, track_allocations: false) do
          require File.join(Dir.pwd, "config/environment")
          GC.start
        end
      RUBY
      # Keeps the app from starting its own profiler, which would write further profiles.
      NOTHING_ELSE = { "RUBY_MEMPROFILER_PPROF_ENABLED" => "false" }.freeze
      PATTERN = "tmp/profiles/boot-%{pid}-%{isotime}.pprof"
      ROW = "%10s %6s  %10s %6s  %s"
      private_constant :PROGRAM, :NOTHING_ELSE, :PATTERN, :ROW

      # @param root [String, Pathname] the app's directory
      # @return [String] the profile's file
      # @raise [RuntimeError] if the app does not boot
      def self.take(root)
        path = FilePattern.new(PATTERN, directory: root.to_s).expand
        variables = CLI::ProfiledEnvironment.variables.slice("RUBYLIB").merge(NOTHING_ELSE)
        return path if system(variables, RbConfig.ruby, "-e", PROGRAM, path, chdir: root.to_s)

        raise "the app did not boot in a separate process"
      end

      # @param profile [Profile]
      def initialize(profile)
        @profile = profile
        @total = profile.total.value
      end

      # @param limit [Integer] how many gems
      # @return [String] a table
      def to_s(limit: 25)
        sites = @profile.top(by: :gem, sort: :cumulative)
        rows = sites.first(limit).map do |site|
          format(ROW, *cells(site.cumulative.value), *cells(site.flat.value), site.name)
        end
        rest = sites.size - rows.size
        rows << "and #{rest} more" if rest.positive?
        ["#{mebibytes(@total)} retained", "", format(ROW, "all calls", "", "itself", "", "gem"), *rows].join("\n")
      end

      private

      def cells(bytes)
        [mebibytes(bytes), format("%.1f%%", 100 * bytes.fdiv(@total))]
      end

      def mebibytes(bytes)
        format("%.2f MiB", bytes.fdiv(1 << 20))
      end
    end
  end
end
