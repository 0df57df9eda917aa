# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/configuration/settable"

module MemprofilerPprof
  module Rails
    # What `config.memprofiler_pprof` is in a Rails app. It also has a reader and a writer for each setting of the
    # {Configuration}; what is assigned here has the lowest precedence of all sources but the defaults. A wrong value
    # fails where it is assigned, that is at boot.
    class Options
      include Configuration::Settable

      # @return [Boolean, Symbol] whether Rails starts the profiler. true: in servers and job runners, that is,
      #   wherever the app is loaded except in rake tasks (other than those that run a job runner, such as
      #   `jobs:work`), commands of bin/rails other than `server`, and Spring. :always: there, too. False by default
      attr_reader :enabled
      # @return [String, nil] where {Rack::Endpoint} is mounted, such as "/debug/pprof"; nowhere by default
      attr_reader :endpoint
      # @return [#call, nil] `authorize:` of {Rack::Endpoint#initialize}
      attr_reader :endpoint_authorize
      # @return [Boolean] whether controllers' actions set the label `endpoint`, "users#show"; true by default
      attr_reader :label_controllers
      # @return [Boolean] whether jobs (Active Job's, Sidekiq's, Delayed Job's and Resque's) set the label `job`, the
      #   name of their class; true by default
      attr_reader :label_jobs

      def initialize
        @enabled = false
        @label_controllers = @label_jobs = true
      end

      # @param value [Boolean, Symbol] true, false or :always
      def enabled=(value)
        @enabled = expect(:enabled, value, "true, false or :always") { [true, false, :always].include?(value) }
      end

      # @param path [String, false, nil]
      def endpoint=(path)
        expect(:endpoint, path, "a path that begins with /, or false") do
          !path || (path.is_a?(String) && path.match?(%r{\A/[^/]}))
        end
        @endpoint = path || nil
      end

      # @param callable [#call, nil]
      def endpoint_authorize=(callable)
        @endpoint_authorize = expect(:endpoint_authorize, callable, "nil or something to call") do
          callable.nil? || callable.respond_to?(:call)
        end
      end

      # @param value [Boolean]
      def label_controllers=(value)
        @label_controllers = boolean(:label_controllers, value)
      end

      # @param value [Boolean]
      def label_jobs=(value)
        @label_jobs = boolean(:label_jobs, value)
      end

      private

      def boolean(name, value)
        expect(name, value, "true or false") { [true, false].include?(value) }
      end

      def expect(name, value, allowed, &)
        Argument.check("config.memprofiler_pprof.#{name}", value, allowed, &)
      end
    end
  end
end
