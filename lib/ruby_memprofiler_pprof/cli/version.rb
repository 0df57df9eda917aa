# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # `version`.
    class Version < Command
      SUMMARY = "print the version of the gem and of Ruby"
      USAGE = ""
      DESCRIPTION = "Prints the version of the gem, and of the Ruby that runs it."
      EXAMPLES = "%{me}"

      # @return [void]
      def call(arguments)
        expect_none(arguments)
        puts "ruby_memprofiler_pprof #{VERSION}", RUBY_DESCRIPTION
        0
      end
    end
  end
end
