# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # The environment variables that make every Ruby process load the profiler before anything else.
    module ProfiledEnvironment
      LIBRARY = File.expand_path("../..", __dir__)
      AUTOSTART = "-rruby_memprofiler_pprof/autostart"
      private_constant :LIBRARY, :AUTOSTART

      class << self
        # RUBYOPT is split at spaces and has no quoting, so what may contain some goes into RUBYLIB.
        # @return [Hash{String => String}] variables to set
        def variables(env = ENV)
          options = env["RUBYOPT"].to_s
          options = [options, AUTOSTART].reject(&:empty?).join(" ") unless options.split.include?(AUTOSTART)
          libraries = load_paths + env["RUBYLIB"].to_s.split(File::PATH_SEPARATOR)
          { "RUBYOPT" => options, "RUBYLIB" => libraries.uniq.join(File::PATH_SEPARATOR) }
        end

        private

        # The directories of the gem's files. An installed gem may have its compiled extension in a separate one.
        def load_paths
          spec = Gem.loaded_specs["ruby_memprofiler_pprof"] if defined?(Gem)
          paths = spec ? spec.full_require_paths : []
          paths.include?(LIBRARY) ? paths : [LIBRARY]
        end
      end
    end
  end
end
