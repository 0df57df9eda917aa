# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

module Bench
  # Compiles empty_hooks.c for the running Ruby.
  module EmptyHooks
    SOURCE = File.expand_path("empty_hooks.c", __dir__)

    # @yieldparam directory [String] where the compiled extension is, until the block ends
    def self.compiled
      Dir.mktmpdir("empty_hooks") do |directory|
        FileUtils.cp(SOURCE, directory)
        run(directory, RbConfig.ruby, "-rmkmf", "-e", "create_makefile('empty_hooks')")
        run(directory, "make")
        yield directory
      end
    end

    def self.run(directory, *command)
      output, status = Open3.capture2e(*command, chdir: directory)
      raise "#{command.join(" ")} failed:\n#{output}" unless status.success?
    end
    private_class_method :run
  end
end
