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
      EXTENSION = "ruby_memprofiler_pprof/extension"
      # A file that requires another one of the gem.
      REQUIRE = %r{\brequire "(ruby_memprofiler_pprof/[\w/]+)"}
      LOADER = File.join(__dir__, "loader.rb")
      private_constant :VERSION_FILE, :OTHERS, :EXTENSION, :REQUIRE, :LOADER

      class << self
        # @param order [Hash{Symbol => Object}] numbers, texts, and lists and hashes of such
        # @return [String] Ruby code: loader.rb, and the argument for it
        def code(order)
          "#{File.read(LOADER).chomp}.run(\n#{{ **order, version: VERSION, library: LIBRARY }.inspect}\n)\n"
        end

        # What the process's side consists of. They require nothing of each other, as all of them are there before any
        # is needed.
        # @return [Hash{String => String}] texts of files by their names, each after those that it requires
        def sources
          # Here all of them are loaded, in some such order.
          require "ruby_memprofiler_pprof/attached"
          own = $LOADED_FEATURES.select { |path| path.start_with?("#{LIBRARY}/") && path.end_with?(".rb") }
          paths = own.grep_v(OTHERS)
          names = paths.map { |path| path.delete_prefix("#{LIBRARY}/").delete_suffix(".rb") } << EXTENSION
          paths.to_h { |path| [path, without(names, File.read(path, encoding: "UTF-8"))] }
        end

        private

        def without(names, text)
          # A call that does nothing: a literal would be warned of.
          text.gsub(REQUIRE) { |call| names.include?(Regexp.last_match(1)) ? "itself" : call }
        end
      end
    end
  end
end
