# frozen_string_literal: true

require "rails"
require "action_controller/railtie"
require "active_job/railtie"
# As Bundler.require would.
require "ruby_memprofiler_pprof"

module Pantry
  class Application < Rails::Application
    config.root = File.expand_path("..", __dir__)
    config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"
    config.cache_classes = Rails.env.production?
    config.eager_load = Rails.env.production?
    config.secret_key_base = "0" * 64
    config.logger = ActiveSupport::Logger.new($stdout)
    config.active_job.queue_adapter = :inline
  end
end
