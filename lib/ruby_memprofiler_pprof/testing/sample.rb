# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # One sample of a profile: the name of its class, its frames, innermost first, and its values by name.
    # @api private
    Sample = Struct.new(:class_name, :frames, :values) do # rubocop:disable Lint/StructNewOverride
      # @param data [ProfileData]
      # @return [Array<Sample>]
      def self.all(data)
        profile = data.profile
        names = profile.sample_types.map { |type| type.name.to_sym }
        profile.samples.map { |sample| new(sample.labels["class"], sample.stack, names.zip(sample.values).to_h) }
      end
    end
  end
end
