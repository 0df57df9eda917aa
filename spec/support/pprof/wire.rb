# frozen_string_literal: true

module Pprof
  # Protobuf's wire format, limited to what pprof uses, and strict: anything else is an error.
  module Wire
    class Malformed < StandardError; end

    VARINT = 0
    BYTES = 2

    module_function

    # Yields the number and the value (an Integer, or a binary String) of each field of a message.
    def each_field(bytes)
      offset = 0
      while offset < bytes.bytesize
        key, offset = varint(bytes, offset)
        case key & 7
        when VARINT then value, offset = varint(bytes, offset)
        when BYTES then value, offset = chunk(bytes, offset)
        else raise Malformed, "wire type #{key & 7} in field #{key >> 3}"
        end
        yield key >> 3, value
      end
    end

    # The numbers in a packed field.
    def packed(bytes)
      numbers = []
      offset = 0
      while offset < bytes.bytesize
        number, offset = varint(bytes, offset)
        numbers << number
      end
      numbers
    end

    # The same 64 bits as a signed number.
    def signed(number)
      number >= 1 << 63 ? number - (1 << 64) : number
    end

    def varint(bytes, offset)
      value = 0
      10.times do |index|
        byte = bytes.getbyte(offset + index) or raise Malformed, "number cut off at byte #{offset}"
        value |= (byte & 0x7f) << (7 * index)
        return [value, offset + index + 1] if byte < 0x80
      end
      raise Malformed, "number of more than 64 bits at byte #{offset}"
    end

    def chunk(bytes, offset)
      size, offset = varint(bytes, offset)
      raise Malformed, "#{size} bytes announced at byte #{offset}, too few follow" if offset + size > bytes.bytesize

      [bytes.byteslice(offset, size), offset + size]
    end
  end
end
