# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Formats figures for people, with three significant digits.
    #
    # @api private
    module Units
      BYTES = %w[B KiB MiB GiB TiB].freeze
      # Below it numbers are written out.
      WRITTEN_OUT = 1_000_000

      module_function

      # @param unit [String] "bytes", "nanoseconds", or whatever else is counted
      # @param signed [Boolean] whether a plus is written
      # @return [String] such as "11.2 MiB"
      def format(value, unit, signed: false)
        text = unsigned(value.abs, unit)
        sign = value.negative? && text.match?(/[1-9]/) ? "-" : ("+" if signed)
        "#{sign}#{text}"
      end

      def unsigned(value, unit)
        case unit
        when "bytes" then bytes(value)
        when "nanoseconds" then value.zero? ? "0 ms" : duration(value / 1e9)
        else count(value)
        end
      end

      # @return [String] such as "10.1 MiB..12.3 MiB"; empty if it is not known
      def interval(low, high, unit)
        low ? [low, high].map { |value| format(value, unit) }.join("..") : ""
      end

      # @param part [Numeric] 0..1
      # @return [String] such as "4.5%"
      def percent(part)
        Kernel.format(part.abs >= 0.0995 ? "%.0f%%" : "%.1f%%", part * 100)
      end

      # @param value [Float, nil] 0..1
      # @return [String] never 100 % or 0 %, since nothing that is sampled is certain
      def probability(value)
        return "" unless value
        return ">99.9%" if value > 0.999
        return Kernel.format("%.1f%%", value * 100) if value >= 0.995

        value < 0.001 ? "<0.1%" : percent(value)
      end

      # @param seconds [Numeric]
      # @return [String] such as "4.2 ms" or "1.31 s"
      def duration(seconds)
        seconds < 1 ? "#{digits(seconds * 1000)} ms" : "#{digits(seconds)} s"
      end

      def bytes(value)
        power = 0
        while value.round >= 1024 && power < BYTES.size - 1
          value /= 1024.0
          power += 1
        end
        "#{power.zero? ? value.round : digits(value)} #{BYTES[power]}"
      end

      def count(value)
        return value.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") if value.round < WRITTEN_OUT

        power = value < 1e9 ? ["M", 1e6] : ["G", 1e9]
        "#{digits(value / power.last)} #{power.first}"
      end

      def digits(value)
        # Rounding may add a digit: 9.996 is 10.0.
        Kernel.format("%.#{decimals(value.round(decimals(value)))}f", value)
      end

      def decimals(value)
        [2 - Math.log10([value, 1].max).floor, 0].max
      end
    end
  end
end
