# frozen_string_literal: true

require_relative "pprof/go_pprof"
require_relative "pprof/maker"
require_relative "pprof/plain_decoder"
require_relative "pprof/profile"
require_relative "pprof/protobuf_decoder"
require_relative "pprof/rules"

# Readers for the specs' profiles: a decoder in plain Ruby (`Pprof.decode`), Google's protobuf library
# (`Pprof.decode_with_protobuf`) and Go's own tool (`Pprof::GoPprof.run`).
module Pprof
  module_function

  # @param profile [String, #pprof_data] the gzipped bytes
  # @return [Pprof::Profile]
  def decode(profile)
    Profile.new(PlainDecoder.decode(bytes(profile)))
  end

  # @param profile [String, #pprof_data] the gzipped bytes
  # @return [Pprof::Profile]
  def decode_with_protobuf(profile)
    Profile.new(ProtobufDecoder.decode(bytes(profile)))
  end

  def bytes(profile)
    profile.respond_to?(:pprof_data) ? profile.pprof_data : profile
  end
end
