# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/testing/class_names"
require "ruby_memprofiler_pprof/testing/frameworks"

module MemprofilerPprof
  module Testing
    # Which samples count: those of one class, or else all but the VM's internal objects (such as inline caches, which
    # appear when code runs for the first time). What is test frameworks' own never counts.
    # @api private
    class Selection
      # Files of this gem's test helpers, and the one that checks arguments. Their frames, and all that are further out,
      # are left out of stacks.
      HARNESS = %r{\A#{Regexp.escape(File.expand_path("..", __dir__))}/(?:testing|rspec|minitest|argument)(?:/|\.rb\z)}
      # The labels of the VM's internal objects, which have no class.
      VMS_OWN = /\A\([A-Z]+\)\z/
      private_constant :HARNESS, :VMS_OWN

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
        if type.is_a?(Module) && ClassNames.own(type).nil?
          raise ArgumentError, "of must be a class with a name, since profiles have names; got #{type.inspect}"
        end

        @type = type
      end

      # @param samples [Array<Sample>]
      # @return [Array<Sample>] those that count, their stacks cut off where the harness begins
      def of(samples)
        samples.filter_map do |sample|
          class_name = sample.class_name.to_s
          next unless counts?(class_name)

          frames = sample.frames.take_while { |frame| !self.class.harness?(frame.file) }
          next if frames.empty? || frameworks.own?(class_name, frames.first.file)

          Sample.new(sample.class_name, frames, sample.values)
        end
      end

      # @return [String] " of Foo", or nothing
      def to_s
        case @type
        when nil then ""
        when String then " of #{@type}"
        else " of #{ClassNames.own(@type)}"
        end
      end

      private

      def counts?(class_name)
        case @type
        when nil then !VMS_OWN.match?(class_name)
        when String then @type == class_name
        else names.key?(class_name)
        end
      end

      # Found out when there are samples: classes and frameworks may be loaded until then.
      def names
        @names ||= ClassNames.below(@type)
      end

      def frameworks
        @frameworks ||= Frameworks.new
      end
    end
  end
end
