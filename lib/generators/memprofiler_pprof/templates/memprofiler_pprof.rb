# frozen_string_literal: true

# The heap profiler. Lines that are commented out show the defaults. Variables in the environment (such as
# RUBY_MEMPROFILER_PPROF_SAMPLE_RATE) take precedence; `memprofiler help run` lists all settings.
Rails.application.config.memprofiler_pprof.tap do |config|
  # Whether Rails starts it. true: in servers and job runners; :always: also in consoles and rake tasks; false: nowhere.
  config.enabled = !Rails.env.test?

  # The fraction of allocations to sample.
  # config.sample_rate = 0.01

  # Whether to sample all the time (:always) or in short windows at random times (:windows). :auto does the latter in
  # servers and job runners on Ruby 3.3 and later, where it costs far less.
  # config.sampling = :auto

  # Each process writes a profile at this interval in seconds, and one when it exits. It keeps some of its files, which
  # span its whole life; those of processes that have ended are removed after a week (keep_days).
  config.interval = 300
  # config.keep_files = 100
  # config.pattern = "tmp/profiles/mem-%{pid}-%{isotime}.pprof"

  # Serves profiles over HTTP: `go tool pprof http://127.0.0.1:3000/debug/pprof/heap`. Without
  # endpoint_authorize, only to this machine and in development.
  # config.endpoint = "/debug/pprof"
  # config.endpoint_authorize = lambda do |env|
  #   token = ENV["PPROF_TOKEN"].to_s
  #   !token.empty? && Rack::Utils.secure_compare(env["HTTP_X_TOKEN"].to_s, token)
  # end

  # Labels by which profiles can be filtered: endpoint=users#show, job=ReportJob.
  # config.label_controllers = true
  # config.label_jobs = true
end
