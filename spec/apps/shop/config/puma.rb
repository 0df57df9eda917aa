# frozen_string_literal: true

bind "tcp://127.0.0.1:#{ENV.fetch("PORT", 3000)}"
environment ENV.fetch("RAILS_ENV", "development")
threads 1, Integer(ENV.fetch("RAILS_MAX_THREADS", 4))
