# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_pattern"
require "ruby_memprofiler_pprof/tags"

module MemprofilerPprof
  class Configuration
    # What stands in a usage line for a value that nothing may show.
    SECRET = "SECRET"
    # User and password in a URL.
    USER_INFORMATION = %r{(?<=://)[^/?\s]+(?=@)}
    private_constant :SECRET
    private_constant :USER_INFORMATION

    # A kind of value: what stands for one in a usage line, what is allowed in words, how text becomes a value, and how
    # a value is checked and brought into its final form. `parser` and `caster` return nil for what is not allowed.
    Type = Struct.new(:placeholder, :allowed, :parser, :caster) do
      # @param value [Object] which may be a URL with a password
      # @return [String] the value for messages, without that
      def self.shown(value)
        value.inspect.sub(USER_INFORMATION, "[hidden]")
      end

      # @param text [String] from the environment or the command line
      # @return [Object, nil] the value; nil if that text is none
      def parse(text)
        cast(parser.call(text)) if text.valid_encoding?
      rescue ArgumentError
        nil
      end

      # @param value [Object] from Ruby code
      # @return [Object, nil] the value; nil if it is not allowed
      def cast(value)
        caster.call(value)
      rescue ArgumentError, TypeError
        nil
      end

      # @param value [Object]
      # @return [String] the value for messages, without secrets
      def show(value)
        secret? ? "[hidden]" : Type.shown(value)
      end

      # @return [Boolean] whether nothing may show a value
      def secret?
        placeholder == SECRET
      end

      # @return [Boolean] whether the only values are true and false
      def boolean?
        placeholder.nil?
      end
    end

    # The kinds of values that settings have.
    # @api private
    module Types
      BOOLEANS = { "true" => true, "1" => true, "yes" => true, "on" => true,
                   "false" => false, "0" => false, "no" => false, "off" => false }.freeze
      # Signals that a process cannot handle, or that Ruby reserves.
      UNTRAPPABLE = %w[EXIT KILL STOP VTALRM SEGV BUS ILL FPE CHLD CLD].freeze
      # Signals by which a terminal or a supervisor ends a process: with a handler they would no longer do so.
      ENDING = %w[INT TERM HUP QUIT].freeze
      PERCENT = /\A(\d+(?:\.\d+)?) ?%\z/
      BYTES = /\A(\d{1,20}(?:\.\d{1,20})?) ?([kmgtpe]?)(i?)b?\z/i
      UNITS = ["", "k", "m", "g", "t", "p", "e"].freeze
      # What a process may have. A smaller number lacks its unit.
      MEMORY = (1 << 20)..(1 << 60)
      private_constant :BOOLEANS, :UNTRAPPABLE, :ENDING, :PERCENT, :BYTES, :UNITS, :MEMORY

      class << self
        def number(placeholder, allowed, &check)
          Type.new(placeholder, allowed, ->(text) { Float(text) },
                   ->(value) { plain(value).then { |number| number if check.call(number) } if finite?(value) })
        end

        def integer(range)
          Type.new("N", "an integer from #{range.begin} to #{range.end}", ->(text) { Integer(text, 10) },
                   ->(value) { value if value.is_a?(Integer) && range.cover?(value) })
        end

        def boolean
          Type.new(nil, "true or false", ->(text) { BOOLEANS[text.downcase] },
                   ->(value) { value if [true, false].include?(value) })
        end

        def one_of(*names)
          Type.new("NAME", "one of #{names.join(", ")}", :to_sym.to_proc,
                   ->(value) { value if names.include?(value) })
        end

        def pattern
          keys = FilePattern::KEYS.map { |key| "%{#{key}}" }.join(" ")
          # Only checks the pattern; whoever uses it resolves a relative name against the right directory.
          Type.new("PATTERN", "a file name, in which #{keys} are filled in", :itself.to_proc,
                   ->(value) { FilePattern.new(value, directory: "/").to_s })
        end

        def tags
          Type.new("NAME=VALUE,...", Tags::ALLOWED, ->(text) { Tags.parse(text) }, ->(value) { Tags.cast(value) })
        end

        def text(placeholder, pattern, allowed)
          Type.new(placeholder, allowed, :itself.to_proc,
                   ->(value) { -value if value.is_a?(String) && pattern.match?(value) })
        end

        def secret(pattern, allowed)
          text(SECRET, pattern, allowed)
        end

        # Only Ruby code has such values.
        def callable
          Type.new("CALLABLE", "something to call", ->(_) {}, ->(value) { value if value.respond_to?(:call) })
        end

        def signal
          names = Signal.list.keys - UNTRAPPABLE - ENDING - ["PIPE"]
          allowed = "a signal that can be handled, such as USR2, but not #{ENDING.join(", ")} (they end processes) " \
                    "or PIPE (broken connections send it)"
          Type.new("SIGNAL", allowed, :upcase.to_proc,
                   ->(value) { value.to_s.delete_prefix("SIG").then { |name| name if names.include?(name) } })
        end

        # "90%" stays as it is, "1.5GiB" becomes bytes.
        def memory
          Type.new("SIZE", 'a part of the limit such as "90%", bytes such as "1.5GiB", from 1MiB to 1EiB, or false',
                   ->(text) { BOOLEANS[text.downcase] == false ? false : text }, ->(value) { amount(value) })
        end

        private

        def amount(value)
          case value
          when false then false
          when Integer then value if MEMORY.cover?(value)
          when PERCENT then "#{Regexp.last_match(1)}%" if Float(Regexp.last_match(1)).between?(1, 100)
          when BYTES then amount(bytes(*Regexp.last_match.captures))
          end
        end

        def bytes(number, unit, binary)
          (Float(number) * ((binary.empty? ? 1000 : 1024)**UNITS.index(unit.downcase))).round
        end

        def finite?(value)
          value.is_a?(Numeric) && value.real? && value.to_f.finite?
        end

        # What claims to be Numeric may be no number to the extension, such as ActiveSupport's 5.minutes.
        def plain(value)
          case value
          when Integer, Float, Rational then value
          else Float(value)
          end
        end
      end
    end
  end
end
