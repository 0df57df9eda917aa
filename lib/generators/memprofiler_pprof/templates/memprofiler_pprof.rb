# frozen_string_literal: true

# The heap profiler. What is commented out stands at its default. Variables in the environment (for instance
# RUBY_MEMPROFILER_PPROF_SAMPLE_RATE) take precedence over it; `ruby_memprofiler_pprof help run` lists all settings.
Rails.application.config.memprofiler_pprof.tap do |config|
  # Whether Rails starts it: true in servers and job runners, :always in consoles and rake tasks, too, or false.
  config.enabled = !Rails.env.test?

  # The fraction of allocations that is sampled.
  # config.sample_rate = 0.01

  # Each process writes a profile of its own every so many seconds, and one when it exits. Nothing removes old ones, but
  # for instance a cron job: find tmp/profiles -name "mem-*.pprof" -mtime +7 -delete
  config.interval = 300
  # config.pattern = "tmp/profiles/mem-%{pid}-%{isotime}.pprof"

  # Serves profiles over HTTP: `go tool pprof http://127.0.0.1:3000/debug/pprof/heap`. Without the second line only to
  # this machine and in development.
  # config.endpoint = "/debug/pprof"
  # config.endpoint_authorize = lambda do |env|
  #   token = ENV["PPROF_TOKEN"].to_s
  #   !token.empty? && Rack::Utils.secure_compare(env["HTTP_X_TOKEN"].to_s, token)
  # end

  # Labels by which profiles can be filtered: endpoint=users#show, job=ReportJob.
  # config.label_controllers = true
  # config.label_jobs = true
end
