# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # Which samples count: those of one class, or all but the VM's own objects (inline caches and the like, which come
    # and go with code that runs for the first time) and what code of a test framework allocates.
    # @api private
    class Selection
      # Files of the harness, below whose frames stacks are not of interest.
      HARNESS = %r{\A#{Regexp.escape(File.expand_path("..", __dir__))}/(?:testing|rspec|minitest)(?:/|\.rb\z)}
      # How the classes of objects that Ruby code never sees are labelled.
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
        unless type.nil? || type.is_a?(Module) || type.is_a?(String)
          raise TypeError, "of must be a class, a module or the name of a class, got #{type.inspect}"
        end
        if type.is_a?(Module) && type.name.nil?
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
        # "(STRING)" and the like, or a class that calls itself something.
        nil
      end
    end
  end
end
