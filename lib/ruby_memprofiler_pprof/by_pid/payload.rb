# frozen_string_literal: true

require "ruby_memprofiler_pprof/version"

module MemprofilerPprof
  module ByPid
    # What a process loads.
    # @api private
    module Payload
      VERSION_FILE = "/ruby_memprofiler_pprof/version.rb"
      # As it is in $LOADED_FEATURES, which a symbolic link makes different from __dir__.
      LIBRARY = $LOADED_FEATURES.find { |path| path.end_with?(VERSION_FILE) }.delete_suffix(VERSION_FILE).freeze
      # Commands, what belongs to tools, and the search for the native library, which is done here.
      OTHERS = %r{/ruby_memprofiler_pprof/(?:cli|by_pid|report|flamegraph|extension|socket_client)(?:/|\.rb\z)}
      # A file that requires another one of the gem, which comes before it.
      REQUIRE = %r{^require "ruby_memprofiler_pprof/.*"$}
      LOADER = File.join(__dir__, "loader.rb")
      private_constant :VERSION_FILE, :OTHERS, :REQUIRE, :LOADER

      class << self
        # @param order [Hash{Symbol => Object}] numbers, texts, and lists and hashes of such
        # @return [String] Ruby code: loader.rb, and the argument for it
        def code(order)
          "#{File.read(LOADER).chomp}.run(\n#{{ **order, version: VERSION, library: LIBRARY }.inspect}\n)\n"
        end

        # What the process's side consists of.
        # @return [Hash{String => String}] texts of files by their names, each after those that it requires
        def sources
          # Here all of them are loaded, in some such order.
          require "ruby_memprofiler_pprof/attached"
          own = $LOADED_FEATURES.select { |path| path.start_with?(LIBRARY) && path.end_with?(".rb") }
          own.grep_v(OTHERS).to_h { |path| [path, File.read(path, encoding: "UTF-8").gsub(REQUIRE, "")] }
        end
      end
    end
  end
end
