# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # A table of processes: what each allocates per second, what is alive in it, and the site with most of that.
      class Processes
        # How early figures are left out where there is no room: the highest rank first.
        DROP_RANKS = { allocated_bytes: 10, objects: 9 }.freeze
        private_constant :DROP_RANKS

        # @!attribute address
        #   @return [String] of the socket
        # @!attribute activity
        #   @return [MemprofilerPprof::Report::Activity, nil]
        # @!attribute totals
        #   @return [MemprofilerPprof::Report::Totals, nil]
        # @!attribute problem
        #   @return [String, nil] why there is neither
        Row = Struct.new(:address, :activity, :totals, :problem) do
          # @return [Numeric] the value of a figure of all sites together
          def value(figure)
            activity ? activity.total[figure].value : 0
          end

          # @return [Integer] in bytes
          def rss
            totals&.[]("rss_bytes") || 0
          end
        end

        # @param answers [Enumerable] one of each
        # @return [String] such as "2 processes"
        def self.count(answers)
          answers.one? ? "1 process" : "#{answers.size} processes"
        end

        # @return [Array<Row>] those with the most first
        attr_reader :rows

        # @param answers [Hash{String => Profile, Source::Unavailable}] by address, see {Directory#fetch}
        # @param options [Hash] `by` and `sort`, as for {MemprofilerPprof::Report::Activity#initialize}
        # @param narrow [Proc] selects the samples of a profile
        def initialize(answers, sort:, **options, &narrow)
          @sort = sort
          @options = options
          rows = answers.map { |address, answer| row(address, answer, narrow) }
          @rows = rows.sort_by { |row| [-row.value(sort), row.address] }
        end

        # @param style [MemprofilerPprof::Report::Style]
        # @param range [Range] the numbers of the rows to show
        # @param chosen [String, nil] the address of the row to mark
        # @return [Array<String>] a line with titles, one for each row, and one for all together
        def lines(style, range = 0.., chosen: nil)
          table = MemprofilerPprof::Report::Table.new(columns)
          (rows[range] || []).each do |row|
            pid, *cells = cells(row)
            row.address == chosen ? table.add(["> #{pid}", *cells], :bold) : table.add([pid, *cells])
          end
          table.add(["all", *sums, ""])
          table.lines(style)
        end

        # @return [Array<Hash>] for JSON
        def to_a
          rows.map do |row|
            { address: row.address, problem: row.problem, totals: row.totals&.to_h, top: row.activity&.to_h }
          end
        end

        private

        def row(address, answer, narrow)
          return Row.new(address, nil, nil, answer.message) if answer.is_a?(Exception)

          activity = MemprofilerPprof::Report::Activity.new(narrow.call(answer), sort: @sort, **@options)
          Row.new(address, activity, MemprofilerPprof::Report::Totals.new(answer), nil)
        end

        def columns
          figures = MemprofilerPprof::Report::Activity::TITLES.map do |figure, title|
            sorted = figure == @sort
            [(sorted ? "*#{title}" : title).rjust(9), :right, sorted ? nil : DROP_RANKS[figure]]
          end
          [["PID", :right, nil], *figures, ["RSS".rjust(9), :right, nil], ["MOST OF *", :left, nil]]
        end

        def cells(row)
          return ["", *[""] * sums.size, "#{row.address}: #{row.problem}"] unless row.activity

          most = row.activity.rows.first
          label = most ? SiteText.label(most, SiteText.paths([most])) : ""
          [row.totals["pid"].to_s, *row.activity.figures, bytes(row.rss), label]
        end

        def sums
          figures = MemprofilerPprof::Report::Activity
          [*figures::ORDERS.map { |figure| figures.text(figure, rows.sum { |row| row.value(figure) }) },
           bytes(rows.sum(&:rss))]
        end

        def bytes(value)
          value.zero? ? "" : MemprofilerPprof::Report::Units.format(value, "bytes")
        end

        SiteText = MemprofilerPprof::Report::SiteText
        private_constant :SiteText
      end
    end
  end
end
