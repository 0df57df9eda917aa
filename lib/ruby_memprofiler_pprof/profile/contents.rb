# frozen_string_literal: true

module MemprofilerPprof
  class Profile
    # What is in a profile.
    module Contents
      # @return [Array<SampleType>] what the values of each sample are, in the same order
      def sample_types
        native_header[0].map { |name, unit| SampleType.new(name, unit).freeze }.freeze
      end

      # @return [SampleType, nil] the one to show first: the profile's own default, or the last one
      def default_sample_type
        types, column = native_header
        column && SampleType.new(*types[column]).freeze
      end

      # @return [Time, nil] when it was taken
      def time
        nanoseconds = native_header[2]
        Time.at(0, nanoseconds, :nanosecond) unless nanoseconds.zero?
      end

      # @return [Float] for how many seconds allocations were counted
      def duration
        native_header[3] / 1e9
      end

      # @return [SampleType, nil] the kind of event between two samples
      def period_type
        type = native_header[4]
        type && SampleType.new(*type).freeze
      end

      # @return [Integer] how many of them there are from one sample to the next
      def period
        native_header[5]
      end

      # @return [Array<String>] remarks on how it was made
      def comments
        native_header[6].freeze
      end

      # @return [Enumerator<Sample>] all samples, created lazily; those with equal stacks and labels are
      #   one
      def samples
        Enumerator.new(native_sample_count) do |yielder|
          frames = frames_of_locations
          labels = native_label_sets.map { |set| set.to_h.freeze }
          native_sample_count.times do |number|
            values, locations, set = native_sample(number)
            stack = locations.flat_map { |location| frames[location] }.freeze
            yielder << Sample.new(values.freeze, stack, labels[set]).freeze
          end
        end
      end

      private

      # For each location its frames, the innermost first; more than one if functions were inlined.
      def frames_of_locations
        strings, functions, locations = native_tables
        locations.map do |location|
          next [Frame.new(location, "", 0, 0).freeze] if location.is_a?(String)

          location.each_slice(2).map do |function, line|
            name, file, start_line = functions[function]
            Frame.new(strings[name], strings[file], line, start_line).freeze
          end
        end
      end

      # The number of a sample type's column.
      def column(type)
        types = native_header[0].map(&:first)
        return native_header[1] || raise(ArgumentError, "the profile has no sample types") if type.nil?

        name = type.is_a?(SampleType) ? type.name : type.to_s
        types.index(name) || raise(ArgumentError, "type must be one of #{types.join(", ")}, got #{type.inspect}")
      end
    end
  end
end
