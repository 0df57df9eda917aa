# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "schema"
require_relative "wire"

module Pprof
  # Decodes a profile in plain Ruby, into one Struct per message. Stricter than other readers: an unknown field, a wrong
  # wire type or a second gzip member is an error.
  module PlainDecoder
    STRUCTS = Schema::MESSAGES.transform_values { |fields| Struct.new(*fields.values.map(&:first)) }.freeze

    module_function

    def decode(gzipped)
      message(:Profile, gunzip(gzipped))
    end

    def gunzip(gzipped)
      reader = Zlib::GzipReader.new(StringIO.new(gzipped))
      bytes = reader.read
      raise Wire::Malformed, "#{reader.unused.bytesize} bytes after the gzip member" if reader.unused

      bytes
    end

    def message(type, bytes)
      fields = Schema::MESSAGES.fetch(type)
      result = blank(type)
      Wire.each_field(bytes) do |number, value|
        name, field_type, count = fields[number] || raise(Wire::Malformed, "#{type} has no field #{number}")
        count == :many ? result[name].concat(values(field_type, value)) : result[name] = value(field_type, value)
      end
      result
    end

    # A message with nothing set, that is with protobuf's defaults.
    def blank(type)
      defaults = Schema::MESSAGES.fetch(type).values.map do |_, field_type, count|
        next [] if count == :many
        next nil if Schema.message?(field_type)

        field_type == :bool ? false : 0
      end
      STRUCTS.fetch(type).new(*defaults)
    end

    def values(type, raw)
      numbers = raw.is_a?(String) && %i[int64 uint64].include?(type)
      numbers ? Wire.packed(raw).map { |number| value(type, number) } : [value(type, raw)]
    end

    def value(type, raw)
      expected = type == :string || Schema.message?(type) ? String : Integer
      raise Wire::Malformed, "#{raw.inspect} is not a #{type}" unless raw.is_a?(expected)

      case type
      when :string then raw.dup.force_encoding(Encoding::UTF_8)
      when :int64 then Wire.signed(raw)
      when :uint64 then raw
      when :bool then !raw.zero?
      else message(type, raw)
      end
    end
  end
end
