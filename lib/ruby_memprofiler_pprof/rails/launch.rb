# frozen_string_literal: true

require "ruby_memprofiler_pprof/rails/flusher"
require "ruby_memprofiler_pprof/rails/labels"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  module Rails
    # Applies the app's settings, and starts the profiler if it should run here.
    #
    # What is wrong in the app's code has failed at its boot already (see {Options}). What is wrong in the environment
    # of the process, or with this Ruby, is logged, and the app runs without a profile.
    #
    # What is no tool is a server or job runner, for which windows pay (see {Service}); tests are neither.
    #
    # The app is patched for labels when the profiler starts, by whatever it is started, and not otherwise.
    # @api private
    class Launch
      # Rake tasks that run a job runner: those of Delayed Job, Resque, Solid Queue and Sneakers.
      RUNNERS = %w[jobs:work jobs:workoff resque:work resque:workers solid_queue:start sneakers:run].freeze
      private_constant :RUNNERS

      # @param options [Options]
      def initialize(options)
        @options = options
        @logger = ::Rails.logger || StderrLogger
      end

      # @return [Boolean] whether the profiler was started, or was so before
      def call
        Service.announce unless tool? || ::Rails.env.test?
        profiler = MemprofilerPprof.profiler
        profiler.integrate(flusher_class: Flusher, logger: @logger, directory: ::Rails.root.to_s,
                           on_start: -> { Labels.install(@options) })
        profiler.configure(:framework) do |config|
          @options.settings.each { |keyword, value| config.public_send(:"#{keyword}=", value) }
        end
        profiler.boot if wanted?
        wanted?
      rescue StandardError => e
        @logger.error("MemprofilerPprof: not profiling: #{e.message} (#{e.class})")
        false
      end

      private

      def wanted?
        @options.enabled == :always || (@options.enabled && !tool?)
      end

      # There are too many servers and job runners to list: recognise what is neither.
      def tool?
        spring? || (tasks.any? ? !tasks.intersect?(RUNNERS) : command?)
      end

      # Spring preloads the app for tests, consoles, generators and tasks, none of which is a server.
      def spring?
        defined?(::Spring::Application) ? true : false
      end

      # The tasks that rake runs here, also by `bin/rails TASK`. It may be loaded in a server, too, but runs none there.
      def tasks
        return [] unless defined?(::Rake.application)

        ::Rake.application.top_level_tasks.map { |task| task[/[^\[]+/] }
      end

      # A command of bin/rails. Loading that of the server defines Rails::Server.
      def command?
        File.basename($PROGRAM_NAME) == "rails" && !defined?(::Rails::Server)
      end
    end
  end
end
