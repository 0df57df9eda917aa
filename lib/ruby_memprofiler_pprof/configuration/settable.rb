# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration"

module MemprofilerPprof
  class Configuration
    # What settings are assigned to, to be in force later: has a reader and a writer for each. A wrong value, or a
    # setting that does not exist, is an ArgumentError at once.
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

      def method_missing(name, *arguments)
        return super unless name.match?(/\A[a-z]\w*=?\z/) && arguments.size <= 1

        names = public_methods.grep(/\A[a-z]\w*=\z/).map { |writer| writer.to_s.delete_suffix("=") }.sort
        word = name.to_s.delete_suffix("=")
        raise ArgumentError, "there is no setting #{word}#{Configuration.suggestion(word, names)}; " \
                             "settings are #{names.join(", ")}"
      end

      def respond_to_missing?(*)
        false
      end
    end
  end
end
