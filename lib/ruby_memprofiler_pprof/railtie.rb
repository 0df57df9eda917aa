# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/rails/options"

module MemprofilerPprof
  # What a Rails app gets by having the gem in its Gemfile: `config.memprofiler_pprof`, labels, rake tasks and a
  # generator. Nothing of Rails is loaded for it that the app does not load.
  # @api private
  class Railtie < ::Rails::Railtie
    config.memprofiler_pprof = Rails::Options.new

    # After config/initializers, so that settings can stand there, and before the app's own code is loaded.
    initializer "memprofiler_pprof.start", after: :load_config_initializers do |app|
      require "ruby_memprofiler_pprof/rails/launch"
      Rails::Launch.new(app.config.memprofiler_pprof).call
    end

    initializer "memprofiler_pprof.endpoint", after: :load_config_initializers do |app|
      options = app.config.memprofiler_pprof
      if options.endpoint && MemprofilerPprof.profiler.enabled?
        require "ruby_memprofiler_pprof/rack"
        endpoint = Rack::Endpoint.new(authorize: options.endpoint_authorize)
        unless options.endpoint_authorize || Rack::Access.development?
          MemprofilerPprof.profiler.logger.warn("MemprofilerPprof: #{options.endpoint} answers nobody: " \
                                                "config.memprofiler_pprof.endpoint_authorize must say whom")
        end
        # Before the app's own routes, one of which may match everything.
        app.routes.prepend { mount endpoint => options.endpoint, as: :memprofiler_pprof }
      end
    end

    rake_tasks { load "ruby_memprofiler_pprof/tasks.rb" }
  end
end
