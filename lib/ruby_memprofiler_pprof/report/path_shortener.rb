# frozen_string_literal: true

require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  module Report
    # Shortens the names of files: those of gems begin with the gem's name and version, those of the program below the
    # current directory, or below the directory that all of them are in.
    #
    # @api private
    class PathShortener
      # Up to the innermost directory of gems, which is followed by a name and version.
      GEM = %r{\A.*/(?:bundler/)?gems/(?=[^/]+-[^/]+/)}
      # As ext/memprofiler_core/src/analysis/gem.rs has them, with Debian's gems.
      LIBRARY = %r{\A(?:.*/vendor_ruby|/usr/(?:share/ruby(?:gems)?|lib64/ruby)|
                       .*/lib(?:64)?/(?:[^/]*-linux-[^/]*/)?(?:ruby/\d[\d.+]*|(?:ruby/)?site_ruby))/}x

      # Of code that Ruby loads before all other.
      INTERNAL = /\A<internal:(.*)>\z/

      # @return [String, nil] as it is in profiles, with a slash at its end; nil if it is gone
      def self.current_directory
        UTF8.current_directory&.then { |directory| "#{directory.scrub}/" }
      end

      # @param files [Array<String, nil>] those that are to be shortened
      def initialize(files)
        own = files.compact.uniq.grep(%r{\A/}).grep_v(GEM).grep_v(LIBRARY)
        current = self.class.current_directory
        @root = current && own.any? { |file| file.start_with?(current) } ? current : common(own)
      end

      # @param file [String]
      # @return [String]
      def shorten(file)
        inner = file[INTERNAL, 1]
        return "<internal:#{shorten(inner)}>" if inner
        return file.sub(GEM, "") if file.match?(GEM)
        return file.sub(LIBRARY, "") if file.match?(LIBRARY)

        file.delete_prefix(@root)
      end

      private

      # The directory that all files are in, with a slash at its end; empty if there is none.
      def common(files)
        return "" if files.size < 2

        first, *others = files.map { |file| file.split("/")[0...-1] }
        shared = first.take_while.with_index { |part, index| others.all? { |other| other[index] == part } }
        shared.size < 2 ? "" : "#{shared.join("/")}/"
      end
    end
  end
end
