# frozen_string_literal: true

module MemprofilerPprof
  class Profile # rubocop:disable Style/Documentation
    # What one value of each sample counts, such as `retained_size` in `bytes`. The members are Strings.
    SampleType = Struct.new(:name, :unit) do
      # @return [String] such as "retained_size/bytes"
      def to_s
        "#{name}/#{unit}"
      end
    end

    # A frame of a stack.
    #
    # @!attribute name
    #   @return [String] the function's; its address if nothing else is known
    # @!attribute file
    #   @return [String] where it is defined; empty if unknown
    # @!attribute line
    #   @return [Integer] the line; 0 if unknown
    # @!attribute start_line
    #   @return [Integer] the line on which the function begins; 0 if unknown, as for functions written in C
    Frame = Struct.new(:name, :file, :line, :start_line) do
      # @return [String] such as "/app/a.rb:3:in `Foo#bar'"
      def to_s
        file.empty? ? name : "#{file}:#{line}:in `#{name}'"
      end
    end

    # A stack with its values.
    #
    # @!attribute values
    #   @return [Array<Integer>] one per {Profile#sample_types}
    # @!attribute stack
    #   @return [Array<Frame>] the innermost first
    # @!attribute labels
    #   @return [Hash{String => String, Integer}] if a label occurs more than once, the last one
    Sample = Struct.new(:values, :stack, :labels) # rubocop:disable Lint/StructNewOverride

    # Half of the width of a 95 % interval, in standard errors.
    Z = 1.96
    # With fewer samples than this, a figure is only a hint.
    FEW = 10
    private_constant :Z, :FEW

    # A figure and how sure it is. Variance, samples, low and high are nil if the profile does not say how it
    # was sampled.
    #
    # The value is the Horvitz-Thompson estimator. If samples with equal stacks and labels stand for n objects with b
    # bytes in all, w objects for each sample, its variance is n(w - 1) for objects, and (w - 1)b²/n for bytes, if their
    # sizes are equal; those of more than twice the size are samples of their own, which are added up. For example, 25
    # samples that stand for 100 objects each are 2500 objects with a standard error of sqrt(2500 * 99) = 497. The
    # variance of a difference is the sum of both, which is too high if the same samples are in both.
    #
    # Samples that were taken in windows come together. The variance of their sum is estimated from the sums of 16
    # groups of windows. Of these, what is in both profiles of a difference cancels out.
    #
    # @!attribute value
    #   @return [Integer, Float] a Float per second, as in {Report::Activity}; else an Integer
    # @!attribute low
    #   @return [Float, nil] the lower end of the 95 % interval
    # @!attribute high
    #   @return [Float, nil] its upper end
    # @!attribute samples
    #   @return [Float, nil] about how many sampled objects it is based on
    # @!attribute variance
    #   @return [Float, nil] the square of the standard error
    # @!attribute windows
    #   @return [Array<Float>, nil] what was sampled in windows, by group of windows; nil if nothing was
    Estimate = Struct.new(:value, :low, :high, :samples, :variance, :windows) do
      # @api private
      def self.of((value, independent_variance, samples, windows, most), signed)
        return new(value).freeze unless independent_variance

        window_variance = WindowGroups.variance(windows)
        margin = Math.hypot(Z * Math.sqrt(independent_variance), WindowGroups::T * Math.sqrt(window_variance))
        low = value - margin
        high = [value + margin, *most].min
        # There cannot be fewer than no objects.
        low = [low, 0.0].max if !signed && value >= 0
        new(value, low, high, samples, independent_variance + window_variance, windows&.freeze).freeze
      end

      # @return [Float, nil] how much of the variance is due to what was sampled in windows
      def window_variance
        variance && WindowGroups.variance(windows)
      end

      # @return [Boolean] whether it is based on fewer than ten samples, and not on every object
      def low_confidence?
        !samples.nil? && samples < FEW && variance.positive?
      end

      # @return [Integer] the value, without a fraction
      def to_i
        value.to_i
      end

      # @return [String] such as "1200 (950..1450)"
      def to_s
        low ? "#{value} (#{low.round}..#{high.round})" : value.to_s
      end
    end

    # What {Profile#top} returns for each method, line, file, gem or class.
    #
    # @!attribute name
    #   @return [String] the method's name, "FILE:LINE", the file, the gem or the class
    # @!attribute file
    #   @return [String, nil] of a method or line
    # @!attribute line
    #   @return [Integer, nil] the line; for a method, the one on which it begins
    # @!attribute function
    #   @return [String, nil] the method that a line is in
    # @!attribute flat
    #   @return [Estimate] what was allocated there itself
    # @!attribute cumulative
    #   @return [Estimate] what was allocated there and in everything called from there; recursion counts once
    Site = Struct.new(:name, :file, :line, :function, :flat, :cumulative)

    # A node of {Profile#tree}, with the members of {Site} and `children`, an Array of nodes, largest first.
    Node = Struct.new(*Site.members, :children) do
      # @return [String] without the children, which may be many
      def inspect
        "#<#{self.class} #{name} #{cumulative} #{children.size} children>"
      end
      alias_method :to_s, :inspect
    end
  end
end
