# frozen_string_literal: true

require "rake/tasklib"
require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/configuration/settable"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # A rake task that runs other tasks, in the same process, and writes profiles of what they allocate: one at each
  # interval, and one at the end, even if they fail. Each setting of the {Configuration} has a writer, except those
  # that concern the process ({Configuration::DESTINATION_SETTINGS}, {Configuration::CPU_SETTINGS},
  # {Configuration::PROCESS_SETTINGS}); variables in the environment take precedence. It uses a separate collector. If
  # `enabled` is false there, the tasks run without a profile.
  #
  # @example In a Rakefile, for `rake profile:import[customers.csv]`
  #   require "ruby_memprofiler_pprof/rake_task"
  #
  #   MemprofilerPprof::RakeTask.new("profile:import") do |t|
  #     t.tasks = "import"
  #     t.sample_rate = 0.1
  #     t.interval = 60
  #   end
  class RakeTask < ::Rake::TaskLib
    include Configuration::Settable

    # The signals and the socket belong to the process's own collector.
    (Configuration::DESTINATION_SETTINGS + Configuration::CPU_SETTINGS +
     Configuration::PROCESS_SETTINGS).map(&:keyword).each do |keyword|
      undef_method keyword
      undef_method :"#{keyword}="
    end

    # Prints on the terminal which files are written.
    # @api private
    module Log
      class << self
        def info(message) = puts(message)
        def warn(message) = StderrLogger.warn(message)
        def error(message) = StderrLogger.error(message)
      end
    end
    private_constant :Log

    # @return [String] of the task
    attr_reader :name
    # @return [String] for `rake -T`
    attr_accessor :description
    # @return [Array<String>] those that are profiled, run in this order with the arguments that this task is given
    attr_reader :tasks

    # @param name [String, Symbol]
    # @yieldparam task [RakeTask] to be set up; its `tasks` must be set
    # @raise [ArgumentError] naming the setting that is wrong, or if there are no tasks
    # @raise [NoMethodError] if there is no such setting
    def initialize(name = :profile)
      super()
      @name = name.to_s
      @tasks = []
      yield self if block_given?
      raise ArgumentError, "tasks must name what #{name} is to run, got none" if tasks.empty?

      @description ||= "Profile the memory of #{tasks.join(", ")}"
      define
    end

    # @param names [String, Symbol, Array<String, Symbol>]
    def tasks=(names)
      @tasks = Array(names).map(&:to_s)
    end

    private

    def define
      desc description
      task(name) { |_, arguments| run(arguments.extras) }
    end

    def run(arguments)
      configuration = MemprofilerPprof.config.merge(:configure, settings)
      return invoke_tasks(arguments) unless configuration.enabled

      collector = Collector.new(sampling: :always, **configuration.collector_options)
      FileFlusher.new(collector, logger: Log, **configuration.flusher_options).run do
        collector.start
        invoke_tasks(arguments)
      ensure
        collector.stop
      end
    end

    def invoke_tasks(arguments)
      tasks.each { |name| ::Rake::Task[name].invoke(*arguments) }
    end
  end
end
