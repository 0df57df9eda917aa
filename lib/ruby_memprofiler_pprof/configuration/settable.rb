# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration"

module MemprofilerPprof
  class Configuration
    # Collects settings that take effect later, through a reader and a writer for each. A wrong value is an
    # ArgumentError at once; a setting that does not exist has no writer, so that assigning it is a NoMethodError.
    # @api private
    module Settable
      Configuration.settings.each do |setting|
        define_method(setting.keyword) { settings.fetch(setting.keyword, setting.default_value) }
        define_method(:"#{setting.keyword}=") { |value| assign(setting.keyword, value) }
      end

      # @return [Hash{Symbol => Object}] what was assigned
      def settings
        @settings ||= {}
      end

      private

      # nil takes back what was assigned.
      def assign(keyword, value)
        checked = Configuration.new.merge(:framework, { keyword => value })
        value.nil? ? settings.delete(keyword) : settings[keyword] = checked[keyword]
      end
    end
  end
end
