# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  module Testing
    # Which samples count: those of one class, or else all but the VM's internal objects (such as inline caches, which
    # appear when code runs for the first time) and what test frameworks allocate.
    # @api private
    class Selection
      # Files of this gem's test helpers, and the one that checks arguments. Their frames, and all that are further out,
      # are left out of stacks.
      HARNESS = %r{\A#{Regexp.escape(File.expand_path("..", __dir__))}/(?:testing|rspec|minitest|argument)(?:/|\.rb\z)}
      # The labels of the VM's internal objects, which have no class.
      VMS_OWN = /\A\([A-Z]+\)\z/
      # Files of test frameworks.
      FRAMEWORK = %r{/lib/(?:rspec/(?:core|support|expectations|matchers|mocks)|minitest)(?:/|\.rb\z)}
      private_constant :HARNESS, :VMS_OWN, :FRAMEWORK

      # @param file [String]
      # @return [Boolean] whether it belongs to this harness
      def self.harness?(file)
        HARNESS.match?(file)
      end

      # @param type [Module, String, nil] objects of this class, or of those below it, or all
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(type = nil)
        Argument.check(:of, type, "a class, a module or the name of a class", TypeError) do
          type.nil? || type.is_a?(Module) || type.is_a?(String)
        end
        # Not `type.name`: a class can have a method of that name of its own.
        if type.is_a?(Module) && Module.instance_method(:name).bind_call(type).nil?
          raise ArgumentError, "of must be a class with a name, since profiles have names; got #{type.inspect}"
        end

        @type = type
        @names = {}
      end

      # @param samples [Array<Sample>]
      # @return [Array<Sample>] those that count, their stacks cut off where the harness begins
      def of(samples)
        samples.filter_map do |sample|
          next unless (@names[sample.class_name] ||= [counts?(sample.class_name)]).first

          frames = sample.frames.take_while { |frame| !self.class.harness?(frame.file) }
          next if frames.empty? || FRAMEWORK.match?(frames.first.file)

          Sample.new(sample.class_name, frames, sample.values)
        end
      end

      # @return [String] " of Foo", or nothing
      def to_s
        @type ? " of #{@type}" : ""
      end

      private

      def counts?(class_name)
        return @type == class_name if @type.is_a?(String)
        return !VMS_OWN.match?(class_name.to_s) if @type.nil?

        found = constant(class_name.to_s.delete_prefix("(anonymous ").delete_suffix(")"))
        found.is_a?(Module) && found <= @type
      end

      def constant(name)
        Object.const_get(name, false) if Object.const_defined?(name, false)
      rescue NameError
        # No valid name of a constant: "(STRING)" and the like, or a class that overrides `name`.
        nil
      end
    end
  end
end
