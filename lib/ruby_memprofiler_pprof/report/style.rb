# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How wide a text may be, and whether it may have colours.
    #
    # @!attribute width
    #   @return [Integer] in columns
    # @!attribute color
    #   @return [Boolean]
    Style = Struct.new(:width, :color) do
      # @api private
      def paint(text, color)
        code = { bold: 1, red: 31, green: 32, yellow: 33, dim: 2 }[color] if self.color
        code && !text.empty? ? "\e[#{code}m#{text}\e[0m" : text
      end
    end
    # For files and pipes.
    PLAIN = Style.new(120, false).freeze
  end
end
