# frozen_string_literal: true

module Pprof
  # The messages of pprof's public format: the fields of each, as number => [name, type, repeated or not]. Both decoders
  # are built from this table.
  module Schema
    def self.one(type)
      [type, :one]
    end

    def self.many(type)
      [type, :many]
    end

    MESSAGES = {
      Profile: {
        1 => [:sample_type, *many(:ValueType)],
        2 => [:sample, *many(:Sample)],
        3 => [:mapping, *many(:Mapping)],
        4 => [:location, *many(:Location)],
        5 => [:function, *many(:Function)],
        6 => [:string_table, *many(:string)],
        7 => [:drop_frames, *one(:int64)],
        8 => [:keep_frames, *one(:int64)],
        9 => [:time_nanos, *one(:int64)],
        10 => [:duration_nanos, *one(:int64)],
        11 => [:period_type, *one(:ValueType)],
        12 => [:period, *one(:int64)],
        13 => [:comment, *many(:int64)],
        14 => [:default_sample_type, *one(:int64)],
        15 => [:doc_url, *one(:int64)]
      },
      ValueType: { 1 => [:type, *one(:int64)], 2 => [:unit, *one(:int64)] },
      Sample: { 1 => [:location_id, *many(:uint64)], 2 => [:value, *many(:int64)], 3 => [:label, *many(:Label)] },
      Label: {
        1 => [:key, *one(:int64)], 2 => [:str, *one(:int64)], 3 => [:num, *one(:int64)], 4 => [:num_unit, *one(:int64)]
      },
      Mapping: {
        1 => [:id, *one(:uint64)],
        2 => [:memory_start, *one(:uint64)],
        3 => [:memory_limit, *one(:uint64)],
        4 => [:file_offset, *one(:uint64)],
        5 => [:filename, *one(:int64)],
        6 => [:build_id, *one(:int64)],
        7 => [:has_functions, *one(:bool)],
        8 => [:has_filenames, *one(:bool)],
        9 => [:has_line_numbers, *one(:bool)],
        10 => [:has_inline_frames, *one(:bool)]
      },
      Location: {
        1 => [:id, *one(:uint64)],
        2 => [:mapping_id, *one(:uint64)],
        3 => [:address, *one(:uint64)],
        4 => [:line, *many(:Line)],
        5 => [:is_folded, *one(:bool)]
      },
      Line: { 1 => [:function_id, *one(:uint64)], 2 => [:line, *one(:int64)], 3 => [:column, *one(:int64)] },
      Function: {
        1 => [:id, *one(:uint64)],
        2 => [:name, *one(:int64)],
        3 => [:system_name, *one(:int64)],
        4 => [:filename, *one(:int64)],
        5 => [:start_line, *one(:int64)]
      }
    }.freeze

    # @return [Boolean] whether the type is one of the messages
    def self.message?(type)
      MESSAGES.key?(type)
    end
  end
end
