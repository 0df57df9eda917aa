# frozen_string_literal: true

require "ruby_memprofiler_pprof"

module MemprofilerPprof
  # Profiles over HTTP: {Endpoint} serves those of the process, {Middleware} that of a single request. Both are plain
  # Rack applications for Rack 2 and 3, and need nothing but Ruby's standard library.
  #
  # @example config/routes.rb
  #   mount MemprofilerPprof::Rack::Endpoint.new(authorize: ->(env) { … }) => "/debug/pprof"
  module Rack
  end
end

require "ruby_memprofiler_pprof/rack/endpoint"
require "ruby_memprofiler_pprof/rack/middleware"
