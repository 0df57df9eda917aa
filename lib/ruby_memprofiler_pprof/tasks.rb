# frozen_string_literal: true

# The rake tasks that a Rails app has by itself. In another Rakefile: load "ruby_memprofiler_pprof/tasks.rb".

require "ruby_memprofiler_pprof/base"

namespace :memprofiler do
  # Without such a task, the program configures the profiler elsewhere, or not at all.
  environment = Rake::Task.task_defined?("environment") || defined?(Rails::Railtie) ? [:environment] : []

  desc "Write profiles while the tasks after it run: rake memprofiler:record[30] db:seed (interval in seconds)"
  task :record, [:interval] => environment do |_, arguments|
    interval = arguments[:interval] && Float(arguments[:interval], exception: false)
    if arguments[:interval] && !interval
      raise ArgumentError, "interval must be a number of seconds, got #{arguments[:interval].inspect}"
    end

    # It may run already, if Rails' setting `enabled` is :always.
    MemprofilerPprof.stop
    MemprofilerPprof.start(files: true, **{ interval: interval }.compact)
    # The last profile is written when the process exits, whether the tasks fail or not.
  end

  if defined?(Rails::Railtie)
    desc "Show what booting the app retains, by gem"
    task :boot do
      require "ruby_memprofiler_pprof/rails/boot_profile"
      path = MemprofilerPprof::Rails::BootProfile.take(Rails.root)
      puts MemprofilerPprof::Rails::BootProfile.new(MemprofilerPprof::Profile.load(path)), "", "All of it: #{path}"
    end
  end

  {
    report: "Show what a profile says: rake memprofiler:report[heap.pprof]",
    diff: "Show what has grown between profiles: rake memprofiler:diff[old.pprof,new.pprof]",
    leaks: "Find what keeps growing in a series of profiles: rake memprofiler:leaks[1.pprof,2.pprof,3.pprof]",
    flamegraph: "Draw a profile as a flame graph: rake memprofiler:flamegraph[heap.pprof]"
  }.each do |command, description|
    desc description
    task command do |_, arguments|
      require "ruby_memprofiler_pprof/cli"
      status = MemprofilerPprof::CLI.new.run([command.to_s, *arguments.extras])
      exit(status) unless status.zero?
    end
  end
end
