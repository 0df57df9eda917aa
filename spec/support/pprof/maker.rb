# frozen_string_literal: true

module Pprof
  # Builds profiles with given figures, ungzipped. Frames are written "name file:line", outermost first.
  class Maker
    TYPES = [%w[allocations count], %w[allocations_size bytes],
             %w[retained_objects count], %w[retained_size bytes]].freeze
    # The size in bytes of each object in a profile made by {.lines}.
    SIZE = 100

    # @param lines [Hash{String => Array(Integer, Integer)}] "FILE:LINE" => objects allocated, retained there
    # @param age [Integer, nil] the label "gc_age" of all of them
    # @param windows [Array<Integer>, nil] if they were sampled in windows, the shares of the 16 groups, 0..15
    # @param options [Hash] as for {#initialize}
    # @return [Maker]
    def self.lines(lines, age: nil, windows: nil, time: 1_000_000_000, duration: 10, **options)
      lines.each_with_object(new(time: time, duration: duration, **options)) do |(line, counts), maker|
        file, number = line.split(":")
        values = counts.flat_map { |count| [count, count * SIZE] }
        maker.sample(["#{File.basename(file, ".rb")}#line#{number} #{line}"], values, age: age, windows: windows)
      end
    end

    # @param time [Numeric] seconds since 1970
    # @param duration [Numeric] seconds
    # @param types [Array<Array(String, String)>]
    # @param period_type [Array(String, String), nil]
    # @param weight [Integer, nil] how many objects one sample stands for
    # @param comments [Hash{Symbol => #to_s}] further ones, written "key=value"
    # @param start_line [Integer] of all functions
    def initialize(time: 0, duration: 0, types: TYPES, period_type: nil, weight: 10, comments: {},
                   start_line: 1)
      @start_line = start_line
      @counts = types.filter_map { |name, unit| name if unit == "count" }
      @strings = { "" => 0 }
      @frames = {}
      @functions = {}
      @locations = {}
      @body = "".b
      types.each { |name, unit| field(@body, 1, message([1, string(name)], [2, string(unit)])) }
      field(@body, 11, message(*period_type.each_with_index.map { |text, at| [at + 1, string(text)] })) if period_type
      number(@body, 9, (time * 1_000_000_000).to_i)
      number(@body, 10, (duration * 1_000_000_000).to_i)
      { greatest_weight: weight, **comments }.compact.each do |name, value|
        number(@body, 13, string("#{name}=#{value}"))
      end
    end

    # @param stack [Array<String, Array>] an Array is a frame's name, file and line
    # @param values [Array<Integer>] one per type
    # @param class_name [String, nil] the label "class"
    # @param age [Integer, nil] the label "gc_age"
    # @param windows [Array<Integer>, nil] if it was sampled in windows, the shares of the 16 groups, 0..15
    # @param labels [Hash{Symbol => String}] further ones
    # @return [self]
    def sample(stack, values, class_name = nil, age: nil, windows: nil, labels: {})
      sample = "".b
      field(sample, 1, packed(stack.reverse.map { |frame| location(frame) }))
      field(sample, 2, packed(values))
      { class: class_name, **labels }.compact.each do |key, value|
        field(sample, 3, message([1, string(key.to_s)], [2, string(value)]))
      end
      field(sample, 3, message([1, string("gc_age")], [3, age])) if age
      window_labels(windows).each { |key, parts| field(sample, 3, message([1, string(key)], [3, parts])) } if windows
      field(@body, 2, sample)
      self
    end

    # @return [MemprofilerPprof::Profile]
    def profile
      MemprofilerPprof::Profile.load(to_s)
    end

    # @return [String] the profile's bytes
    def to_s
      bytes = @body.dup
      @locations.each { |(function, line), id| field(bytes, 4, location_message(id, function, line)) }
      @functions.each do |(name, file), id|
        field(bytes, 5, message([1, id], [2, string(name)], [4, string(file)], [5, @start_line]))
      end
      @strings.each_key { |text| field(bytes, 6, text.b) }
      bytes
    end

    private

    def string(text)
      @strings[text] ||= @strings.size
    end

    # Four bits for each group, those of the first the lowest.
    def window_labels(shares)
      packed = shares.each_with_index.sum { |share, group| share << (4 * group) }
      @counts.to_h { |name| ["#{name}_windows", packed] }
    end

    def location(frame)
      @frames[frame] ||= new_location(frame)
    end

    def new_location(frame)
      name, file, line = frame.is_a?(Array) ? frame : frame.match(/\A(.*?)(?: (\S+):(\d+))?\z/m).captures
      [name, file.to_s].each { |text| string(text) }
      function = @functions[[name, file.to_s]] ||= @functions.size + 1
      @locations[[function, line.to_i]] ||= @locations.size + 1
    end

    def location_message(id, function, line)
      location = message([1, id])
      field(location, 4, message([1, function], [2, line]))
      location
    end

    def message(*fields)
      fields.each_with_object("".b) { |(tag, value), bytes| number(bytes, tag, value) }
    end

    def packed(values)
      values.map { |value| varint(value) }.join
    end

    def number(bytes, tag, value)
      bytes << varint(tag << 3) << varint(value)
    end

    def field(bytes, tag, content)
      bytes << varint((tag << 3) | 2) << varint(content.bytesize) << content
    end

    def varint(value)
      bytes = "".b
      while value > 0x7f
        bytes << ((value & 0x7f) | 0x80)
        value >>= 7
      end
      bytes << value
    end
  end
end
