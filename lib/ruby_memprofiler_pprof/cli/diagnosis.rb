# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/diagnosis/places"
require "ruby_memprofiler_pprof/configuration"

module MemprofilerPprof
  class CLI
    # Finds out what the profiler can do with this Ruby, in this directory and with these settings.
    class Diagnosis
      SERVICES_ONLY = "in windows in servers and job runners after their first minute, always elsewhere"
      private_constant :SERVICES_ONLY

      # One finding. Status: :ok, :note (worth knowing), :degraded (works, but not as well as it could) or :failing.
      Check = Struct.new(:name, :status, :text)

      # @return [Array<Check>]
      attr_reader :checks
      # @return [Hash{Symbol => Object}] what the extension says of this Ruby
      attr_reader :facts
      # @return [Configuration, nil] as the environment says
      attr_reader :configuration

      # @param env [ENV, Hash{String => String}]
      def initialize(env = ENV)
        @checks = []
        @facts = {}
        check_settings(env)
        check_places
        return unless check_extension

        check_ruby
        check_walker
        check_liveness
        check_sampling
        check_quirks
        check_trial
      end

      # @return [Symbol] that of the worst check: :ok, :degraded or :failing
      def status
        %i[failing degraded].find { |status| checks.any? { |check| check.status == status } } || :ok
      end

      private

      def add(name, status, text)
        checks << Check.new(name, status, text)
      end

      def check_settings(env)
        @configuration = Configuration.from_env(env)
        unknown = configuration.unknown.map { |variable| "#{variable}#{Configuration.suggestion_for(variable)}" }
        return add("settings", :degraded, "unknown: #{unknown.join(", ")}") unless unknown.empty?

        add("settings", :ok, "the environment has no wrong ones")
      rescue ArgumentError => e
        add("settings", :failing, e.message)
      end

      def check_effect
        return add("enabled", :note, "the setting enabled is false: nothing is profiled") unless configuration.enabled

        add("sample_rate", :note, "is 0: no object is sampled") if configuration.sample_rate.zero?
      end

      def check_places
        return unless configuration

        check_effect
        places = Places.new(configuration)
        add("files", *places.files)
        places.socket&.then { |finding| add("socket", *finding) }
      end

      def check_extension
        require "ruby_memprofiler_pprof"
        @facts = MemprofilerPprof.send(:diagnose)
        file = $LOADED_FEATURES.find { |name| name.match?(%r{/ruby_memprofiler_pprof\.(so|bundle)\z}) }
        add("extension", :ok, "loaded from #{file}")
      rescue StandardError, LoadError => e
        add("extension", :failing, "#{e.message} (#{e.class})")
        nil
      end

      def check_ruby
        add("JIT", :ok, jit)
        collector = facts[:garbage_collector]
        add("garbage collector", collector == "default" ? :ok : :degraded, collector)
        known = facts[:waiting_threads_known]
        add("waiting threads", :ok, known ? "detected: a flush yields to them" : "not detected: each slice yields")
      end

      def jit
        %i[YJIT ZJIT RJIT MJIT].each do |name|
          next unless RubyVM.const_defined?(name)

          compiler = RubyVM.const_get(name)
          return "#{name} is on" if compiler.respond_to?(:enabled?) && compiler.enabled?
        end
        "none is on"
      end

      # That there is no layout for this Ruby is a failure, too.
      def check_walker
        failure = facts[:walker_failure]
        return add("frame walker", :ok, "passed its self-test on Ruby #{facts[:built_for]}") unless failure

        add("frame walker", :degraded, "does not work: #{failure}; rb_profile_frames is used instead")
      end

      def check_liveness
        modes = facts[:liveness]
        return add("liveness", :ok, "available: #{modes.join(", ")}") if modes.include?(:mark_bits)

        add("liveness", :degraded, "available: #{modes.join(", ")}; this garbage collector does not expose mark bits")
      end

      def check_sampling
        return unless configuration

        sampling, reason = Collector.new(**configuration.collector_options).send(:sampling_in_services)
        @facts = facts.merge(sampling_in_services: sampling, sampling_reason: reason)
        return add("sampling", :ok, SERVICES_ONLY) if sampling == :windows && configuration.sampling == :auto

        add("sampling", configuration.sampling == :windows && sampling == :always ? :degraded : :ok,
            "#{sampling}: #{reason}")
      end

      def check_quirks
        facts[:quirks].each do |quirk|
          present = quirk[:present]
          add("quirk #{quirk[:name]}", present ? :note : :ok, present ? quirk[:meaning] : "is not in this Ruby")
        end
      end

      # Takes a profile.
      def check_trial
        return unless configuration

        collector = trial_collector
        kept = nil
        profile = collector.profile { kept = Array.new(1000) { Object.new } }
        stats = collector.stats
        @facts = facts.merge(stats.slice(:bt_method, :liveness).transform_keys { |key| :"#{key}_used" })
        return add("trial", :ok, used) if profile.heap_samples_count >= kept.size

        add("trial", :failing, "#{profile.heap_samples_count} of #{kept.size} objects were seen")
      rescue Error => e
        add("trial", :failing, "#{e.message} (#{e.class})")
      end

      # Has all settings but those by which some objects might not be sampled.
      def trial_collector
        options = configuration.collector_options.except(:max_heap_samples, :max_stack_bytes)
        Collector.new(**options, sample_rate: 1.0)
      end

      def used
        method, liveness = facts.values_at(:bt_method_used, :liveness_used)
        "all objects of a trial were seen, with bt_method #{method} (#{reason(:bt_method, method)}) and " \
          "liveness #{liveness} (#{reason(:liveness, liveness)})"
      end

      def reason(keyword, used)
        asked = configuration[keyword]
        return "#{asked} was asked for" unless [used, :auto].include?(asked)
        return "the best that is available" if asked == :auto

        configuration.source(keyword) == :default ? "the default" : "as #{Configuration::PREFIX}#{keyword.upcase} says"
      end
    end
  end
end
