# frozen_string_literal: true

require "securerandom"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

module Shop
  class Application < Rails::Application
    config.root = File.expand_path("..", __dir__)
    config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"

    config.cache_classes = Rails.env.production?
    config.eager_load = Rails.env.production?
    config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
    config.cache_store = :memory_store, { size: 8 * 1024 * 1024 }
    config.logger = ActiveSupport::Logger.new($stdout)
    config.log_level = :info
  end
end
