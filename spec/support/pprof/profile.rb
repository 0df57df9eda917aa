# frozen_string_literal: true

module Pprof
  ValueType = Struct.new(:type, :unit)
  Frame = Struct.new(:name, :file, :line, :start_line, :system_name)
  Mapping = Struct.new(:id, :file, :build_id, :start, :limit, :has_functions, :has_filenames, :has_line_numbers)

  # One sample: frames leaf first, labels by key (a String or an Integer each), the units of the numeric ones, and
  # values by the name of their type.
  Sample = Struct.new(:frames, :labels, :label_units, :values) do # rubocop:disable Lint/StructNewOverride
    # sample[:retained_size]
    def [](type)
      return super if members.include?(type.to_sym)

      values.fetch(type.to_s)
    end

    # The names of the frames, leaf first.
    def names
      frames.map(&:name)
    end

    def frame?(pattern)
      frames.any? { |frame| pattern === frame.name } # rubocop:disable Style/CaseEquality
    end
  end

  # A decoded profile with its strings and references looked up. Built from the result of either decoder, which is kept
  # in `raw`.
  class Profile
    attr_reader :raw

    def initialize(raw)
      @raw = raw
    end

    def samples
      @samples ||= raw.sample.map { |sample| build_sample(sample) }
    end

    def sample_types
      @sample_types ||= raw.sample_type.map { |type| value_type(type) }
    end

    # ["allocations", …] in order.
    def type_names
      sample_types.map(&:type)
    end

    def period_type
      raw.period_type && value_type(raw.period_type)
    end

    def period
      raw.period
    end

    def time_nanos
      raw.time_nanos
    end

    def duration_nanos
      raw.duration_nanos
    end

    def comments
      raw.comment.map { |index| string(index) }
    end

    def default_sample_type
      string(raw.default_sample_type)
    end

    def doc_url
      string(raw.doc_url)
    end

    def drop_frames
      string(raw.drop_frames)
    end

    def mappings
      raw.mapping.map do |mapping|
        Mapping.new(mapping.id, string(mapping.filename), string(mapping.build_id), mapping.memory_start,
                    mapping.memory_limit, mapping.has_functions, mapping.has_filenames, mapping.has_line_numbers)
      end
    end

    # The only mapping; an error if there are more or none.
    def mapping
      raise "#{mappings.size} mappings, expected one" unless mappings.size == 1

      mappings.first
    end

    # The sum of one value over all samples, or those for which the block is true.
    def total(type, &condition)
      chosen = condition ? samples.select(&condition) : samples
      chosen.sum { |sample| sample[type] }
    end

    # Class name => sum of one value.
    def by_class(type = :retained_objects)
      by_label("class", type)
    end

    # Label's value => sum of one value; samples without the label are under nil.
    def by_label(key, type)
      samples.group_by { |sample| sample.labels[key] }.transform_values { |group| group.sum { |sample| sample[type] } }
    end

    # The samples with a frame whose name equals or matches the pattern.
    def samples_with_frame(pattern)
      samples.select { |sample| sample.frame?(pattern) }
    end

    private

    def string(index)
      raw.string_table.fetch(index)
    end

    def value_type(type)
      ValueType.new(string(type.type), string(type.unit))
    end

    def build_sample(sample)
      labels = sample.label.to_h do |label|
        [string(label.key), label.str.zero? ? label.num : string(label.str)]
      end
      units = sample.label.reject { |label| label.num_unit.zero? }.to_h { |l| [string(l.key), string(l.num_unit)] }
      frames = sample.location_id.flat_map { |id| location_frames.fetch(id) }
      Sample.new(frames, labels, units, type_names.zip(sample.value).to_h)
    end

    def location_frames
      @location_frames ||= raw.location.to_h do |location|
        [location.id, location.line.map { |line| frame(line) }]
      end
    end

    def frame(line)
      function = functions.fetch(line.function_id)
      Frame.new(string(function.name), string(function.filename), line.line, function.start_line,
                string(function.system_name))
    end

    def functions
      @functions ||= raw.function.to_h { |function| [function.id, function] }
    end
  end
end
