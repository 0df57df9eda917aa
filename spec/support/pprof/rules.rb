# frozen_string_literal: true

module Pprof
  # What existing readers require beyond a decodable message.
  module Rules
    module_function

    # @return [Array<String>] the profile's errors, in words; empty if there are none
    def violations(profile)
      raw = profile.raw
      tables(raw) + references(raw) + values(raw) + labels(profile)
    end

    # Parca rejects ids other than 1..n.
    def tables(raw)
      found = { mapping: raw.mapping, location: raw.location, function: raw.function }.filter_map do |name, table|
        "ids of #{name} are not 1..#{table.size}" unless table.map(&:id) == (1..table.size).to_a
      end
      found << "string_table[0] is #{raw.string_table.first.inspect}" unless raw.string_table.first == ""
      found << "a string is there twice" if raw.string_table.to_a.uniq.size != raw.string_table.size
      found << "#{raw.mapping.size} mappings" unless raw.mapping.size == 1
      found
    end

    def references(raw)
      locations = raw.sample.flat_map { |sample| sample.location_id.to_a }
      {
        "a sample has an unknown location" => locations.any? { |id| !id.between?(1, raw.location.size) },
        "a location has not exactly one line" => raw.location.any? { |location| location.line.size != 1 },
        "a location has no mapping" => raw.location.any? { |location| location.mapping_id != 1 },
        "a line has an unknown function" => raw.location.flat_map { |location| location.line.to_a }
                                               .any? { |line| !line.function_id.between?(1, raw.function.size) },
        # Readers take a name with one for mangled.
        "a function has a system_name" => raw.function.any? { |function| function.system_name != 0 }
      }.select { |_, wrong| wrong }.keys
    end

    # speedscope throws an exception for negative values, Pyroscope drops them.
    def values(raw)
      {
        "a sample has not one value per type" => raw.sample.any? { |s| s.value.size != raw.sample_type.size },
        "a value is negative" => raw.sample.any? { |sample| sample.value.any?(&:negative?) },
        "two samples have the same stack and labels" => duplicates?(raw)
      }.select { |_, wrong| wrong }.keys
    end

    def duplicates?(raw)
      keys = raw.sample.map do |sample|
        [sample.location_id.to_a, sample.label.map { |label| [label.key, label.str, label.num, label.num_unit] }.sort]
      end
      keys.uniq.size != keys.size
    end

    def labels(profile)
      labels = profile.raw.sample.flat_map { |sample| sample.label.to_a }
      labels.uniq { |label| [label.key, label.num_unit] }.filter_map do |label|
        key = profile.raw.string_table[label.key]
        next "the label key #{key} is reserved" if key.start_with?("pprof::")

        "the numeric label #{key} has no unit" if label.str.zero? && label.num_unit.zero?
      end
    end
  end
end
