# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # Which objects are those of test frameworks, among all that their code has allocated: all of Ruby's own classes and
    # of theirs. Objects of a class of the program are the program's, as with `and_call_original` and the implicit
    # `subject`; only matchers copy such objects for themselves, as `change` does.
    #
    # Only frameworks that are loaded count, and only the files that were loaded as theirs.
    # @api private
    class Frameworks
      # Names of their classes, and of those in the library with which RSpec compares texts.
      CLASS = /\A(?:\(anonymous )?(?:RSpec|Mini[Tt]est|Diff::LCS)(?:::|\)|\z)/
      ANONYMOUS = "(anonymous "
      # What comes with Ruby: what is defined in C or before any file, and the standard library.
      LIBRARY = Regexp.union(RbConfig::CONFIG.values_at("rubylibdir", "rubyarchdir"))
      RUBYS_OWN = %r{\A(?:<internal:|<main>\z|ruby\z|#{LIBRARY}/)}
      private_constant :CLASS, :ANONYMOUS, :LIBRARY, :RUBYS_OWN

      def initialize
        expectations = rspec(:Expectations)
        matchers = File.join(File.dirname(expectations), "matchers") if expectations
        @callers = files(rspec(:Core), rspec(:Mocks), minitest)
        @judges = files(rspec(:Support), expectations, matchers)
        @programs = {}
      end

      # @param class_name [String] as profiles have it
      # @param file [String] of the innermost frame
      # @return [Boolean] whether such an object is a framework's own
      def own?(class_name, file)
        @judges.match?(file) || (@callers.match?(file) && !programs?(class_name))
      end

      private

      # @return [Regexp] for files in directories, and for those beside them that load them
      def files(*directories)
        directories = directories.compact.map { |directory| File.realdirpath(directory) }
        %r{\A#{Regexp.union(directories)}(?:/|\.rb\z)}
      end

      # The directory of a part, from ".../lib/rspec/core/version.rb". RSpec loads a part whose constant is missing.
      def rspec(part)
        return unless defined?(::RSpec) && ::RSpec.const_defined?(part, false)

        path, = ::RSpec.const_get(part)::Version.const_source_location(:STRING)
        File.dirname(path)
      end

      # From ".../lib/minitest.rb".
      def minitest
        return unless defined?(::Minitest::VERSION)

        path, = ::Minitest.const_source_location(:VERSION)
        path.delete_suffix(".rb")
      end

      def programs?(class_name)
        return @programs[class_name] if @programs.key?(class_name)

        @programs[class_name] = !CLASS.match?(class_name) &&
                                (class_name.start_with?(ANONYMOUS) || !rubys_own?(class_name[/\A[^:]*/]))
      end

      # Looks at the outermost constant only, for which nothing is loaded.
      def rubys_own?(constant)
        location = Object.const_source_location(constant, false)
        # Nil if it was removed, which the program must have done.
        !location.nil? && (location.empty? || RUBYS_OWN.match?(location.first))
      rescue NameError
        # No constant's name, as of a class in an anonymous module; or the VM's own, such as "(IMEMO)".
        constant.start_with?("(")
      end
    end
  end
end
