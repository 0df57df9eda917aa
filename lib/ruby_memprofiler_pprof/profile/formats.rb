# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"

module MemprofilerPprof
  class Profile
    # How a profile is written.
    module Formats
      # - `:pprof`: for `go tool pprof` and all others that read it, gzipped
      # - `:folded`: a line per stack, for flamegraph.pl and the like
      # - `:speedscope`: JSON for https://www.speedscope.app, with all sample types
      FORMATS = %i[pprof folded speedscope].freeze

      # @param target [String, #to_path, #write] the name of a file, which only its owner will be able to read and which
      #   replaces an existing one; or an IO
      # @param format [Symbol] one of {FORMATS}
      # @param type [Symbol, String, SampleType, nil] what `:folded` is to count
      # @return [Integer] the number of bytes written
      # @raise [ProfileError] if the format cannot have negative values
      # @raise [SystemCallError] if the file cannot be written
      def write(target, format: :pprof, type: nil)
        bytes = encode(format, type)
        # An IO may have a path, and so may what stands for one, such as a Tempfile.
        is_path = target.respond_to?(:to_path) && !target.respond_to?(:to_io)
        return target.write(bytes) if target.respond_to?(:write) && !is_path

        AtomicFile.write(target, bytes)
        bytes.bytesize
      end

      # @return [String] gzipped pprof, binary
      def to_pprof
        native_pprof
      end

      # One line per stack: the names from the outermost function to the innermost, separated by `;`, and the value. A
      # `;` in a name becomes `:`.
      #
      # @param type [Symbol, String, SampleType, nil]
      # @return [String]
      def to_folded(type: nil)
        native_folded(column(type))
      end

      # @param name [String] what speedscope shows as the profile's name
      # @return [String] JSON
      # @raise [ProfileError] if a value is negative, as in a difference
      def to_speedscope(name: "profile")
        native_speedscope(name, "ruby_memprofiler_pprof #{VERSION}")
      end

      private

      def encode(format, type)
        case format
        when :pprof then to_pprof
        when :folded then to_folded(type: type)
        when :speedscope then to_speedscope
        else raise ArgumentError, "format must be one of #{FORMATS.map(&:inspect).join(", ")}, got #{format.inspect}"
        end
      end
    end
  end
end
