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

      # @return [Array] what all samples of a call path have in common: the class, and one frame for each line. Once
      #   YJIT has compiled their caller, C functions have no frame; before that, they have one at its line.
      def site
        lines = frames.chunk_while { |inner, outer| inner.file == outer.file && inner.line == outer.line }
        [class_name, lines.map(&:last)]
      end
    end
  end
end
