# frozen_string_literal: true

require "zlib"
require_relative "schema"

module Pprof
  # Decodes a profile with Google's own protobuf library, which knows nothing of this project's code.
  module ProtobufDecoder
    TYPES = { int64: 3, uint64: 4, bool: 8, string: 9, message: 11 }.freeze
    OPTIONAL = 1
    REPEATED = 3
    PACKAGE = "memprofiler_spec"

    module_function

    # @return [Boolean] whether the library is available
    def available?
      require "google/protobuf"
      require "google/protobuf/descriptor_pb"
      true
    rescue LoadError
      false
    end

    def decode(gzipped)
      profile_class.decode(Zlib.gunzip(gzipped))
    end

    def profile_class
      classes.fetch(:Profile)
    end

    # All of them: version 3.21 can read a message only after its class was requested.
    def classes
      @classes ||= Schema::MESSAGES.to_h { |name, _| [name, pool.lookup("#{PACKAGE}.#{name}").msgclass] }
    end

    # Every version of the library has add_serialized_file; newer ones lack the DSL.
    def pool
      @pool ||= Google::Protobuf::DescriptorPool.new.tap do |pool|
        pool.add_serialized_file(Google::Protobuf::FileDescriptorProto.encode(file))
      end
    end

    def file
      Google::Protobuf::FileDescriptorProto.new(
        name: "memprofiler_spec.proto", package: PACKAGE, syntax: "proto3",
        message_type: Schema::MESSAGES.map { |name, fields| message(name, fields) }
      )
    end

    def message(name, fields)
      Google::Protobuf::DescriptorProto.new(name: name.to_s, field: fields.map { |number, row| field(number, *row) })
    end

    def field(number, name, type, count)
      message = Schema.message?(type)
      options = { name: name.to_s, number: number, label: count == :many ? REPEATED : OPTIONAL,
                  type: TYPES.fetch(message ? :message : type) }
      options[:type_name] = ".#{PACKAGE}.#{type}" if message
      Google::Protobuf::FieldDescriptorProto.new(**options)
    end
  end
end
