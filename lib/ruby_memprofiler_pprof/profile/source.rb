# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  class Profile
    # Where {Profile.load} reads from.
    #
    # @api private
    class Source
      # The ids of the entries of a profile have 32 bits.
      GREATEST_LIMIT = 4_294_967_295
      # How many bytes are read at a time: IO#read allocates as much as it is asked for.
      PIECE = 1 << 20

      def initialize(source, max_bytes)
        Argument.check(:max_bytes, max_bytes, "an Integer", TypeError) { max_bytes.is_a?(Integer) }
        Argument.check(:max_bytes, max_bytes, "in 1..#{GREATEST_LIMIT}") { max_bytes.between?(1, GREATEST_LIMIT) }
        @max_bytes = max_bytes
        # An IO may have a path, and so may what stands for one, such as a Tempfile.
        @source = source.respond_to?(:to_path) && !source.respond_to?(:to_io) ? source.to_path : source
      end

      # Yields the bytes; errors that the block raises get the source's name.
      def read
        yield bytes
      rescue ProfileError => e
        raise ProfileError, "#{name}: #{e.message}", cause: nil
      end

      private

      def bytes
        return read_from(@source) if @source.respond_to?(:read)

        unless @source.is_a?(String)
          raise TypeError, "source must be a file name, an IO or the bytes of a profile, got #{@source.inspect}"
        end

        bytes? ? @source : File.open(@source, "rb") { |file| read_from(file) }
      end

      # The limit is for the decompressed profile, but a compressed one is hardly ever longer.
      def read_from(io)
        bytes = "".b
        while bytes.bytesize <= @max_bytes
          piece = io.read([PIECE, @max_bytes + 1 - bytes.bytesize].min).to_s
          return bytes if piece.empty?

          bytes << piece.b
        end
        raise ProfileError, "has more than #{@max_bytes} bytes, which is the limit"
      end

      def bytes?
        @source.b.include?("\0")
      end

      def name
        # A pipe has no path.
        path = @source.path if @source.respond_to?(:path)
        return path.to_s if path
        return @source.inspect[0, 80] if @source.respond_to?(:read)

        bytes? ? "profile of #{@source.bytesize} bytes" : @source
      end
    end
  end
end
