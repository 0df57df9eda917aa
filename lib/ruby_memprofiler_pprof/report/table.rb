# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Rows of text in columns. Where there is too little room, columns are left out, those with the highest `drop_rank`
    # first, and the text of the last column is cut in its middle. A cell of the last column may be an Array of a text
    # and of a shorter form of it for when it is too long. Control characters in cells are replaced.
    #
    # @api private
    class Table
      # @!attribute drop_rank
      #   @return [Integer, nil] nil if it must stay; columns with the same rank go together
      Column = Struct.new(:title, :align, :drop_rank)
      # @!attribute code
      #   @return [String, nil] one of {Codes}: what the row states
      # @!attribute wide
      #   @return [Boolean, nil] whether its only text may be as wide as the table
      Row = Struct.new(:cells, :color, :code, :wide)
      # The width that the last column should have at least.
      ROOM = 44
      GAP = "  "

      # @return [Array<Column>]
      attr_reader :columns
      # @return [Array<Row>]
      attr_reader :rows

      # @param columns [Array<Array>] the members of each Column
      def initialize(columns)
        @columns = columns.map { |members| Column.new(*members) }
        @rows = []
      end

      # @param cells [Array<String>]
      # @param color [Symbol, nil] of the row
      # @param code [String, nil] one of {Codes}
      # @return [self]
      def add(cells, color = nil, code: nil)
        @rows << Row.new(printable(cells), color, code)
        self
      end

      # @param texts [Array<String>] about the row before, and shorter
      # @param code [String] one of {Codes}
      # @return [self]
      def add_wide(texts, code:)
        @rows << Row.new([*[""] * (@columns.size - 1), printable(texts)], nil, code, true)
        self
      end

      # @param style [Style]
      # @return [Array<String>] lines
      def lines(style)
        shown = fitting(style.width)
        [line(@columns.map(&:title), shown, style, :bold),
         *@rows.map { |row| row.wide ? wide(row, style) : line(row.cells, shown, style, row.color) }]
      end

      private

      def printable(cells)
        cells.map { |cell| cell.is_a?(Array) ? printable(cell) : SiteText.printable(cell) }
      end

      # The indices of the columns that fit, without those that are empty.
      def fitting(width)
        shown = @columns.each_index.reject { |index| blank?(index) }
        ranks = @columns.filter_map(&:drop_rank).uniq.sort
        while ranks.any? && width - taken(shown) < [ROOM, widest(shown.last)].min
          highest = ranks.pop
          shown.reject! { |index| @columns[index].drop_rank == highest }
        end
        shown
      end

      # All columns but the last one.
      def taken(shown)
        shown[0...-1].sum { |index| widest(index) + GAP.size }
      end

      def widest(index)
        (@widest ||= {})[index] ||= [@columns[index].title, *texts(index)].map { |text| DisplayWidth.of(text) }.max
      end

      def blank?(index)
        @rows.any? && @rows.all? { |row| row.cells[index].empty? }
      end

      def texts(index)
        @rows.reject(&:wide).map { |row| Array(row.cells[index]).last }
      end

      def wide(row, style)
        Table.cut(*row.cells.last, width: style.width)
      end

      def line(cells, shown, style, color)
        fixed = shown[0...-1].map do |index|
          DisplayWidth.public_send(@columns[index].align == :right ? :rjust : :ljust, cells[index], widest(index))
        end
        last = Table.cut(*cells[shown.last], width: [style.width - taken(shown), 8].max)
        style.paint([*fixed, last].join(GAP).rstrip, color)
      end

      class << self
        # @return [String] the text, or else the short one, without its middle if that is too long, too
        def cut(text, short = text, width:)
          return text if DisplayWidth.of(text) <= width
          return short if DisplayWidth.of(short) <= width

          # Two thirds of what is kept are from the end, which has the file's own name.
          left = (width - 3) / 3
          "#{DisplayWidth.first(short, left)}...#{DisplayWidth.last(short, width - 3 - left)}"
        end
      end
    end
  end
end
