# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "shellwords"

# An extension of our own whose objects misbehave when asked for their size; see hostile/hostile.c. It is compiled at
# first use, for each Ruby into a folder of its own.
module HostileExtension
  SOURCE = File.expand_path("hostile/hostile.c", __dir__)
  FOLDER = File.expand_path("../../tmp/hostile-#{RUBY_VERSION}-#{RUBY_PLATFORM}", __dir__)
  LIBRARY = File.join(FOLDER, "hostile.#{RbConfig::CONFIG["DLEXT"]}")

  class CompilationFailed < StandardError; end

  module_function

  # @return [String, nil] why it cannot be compiled here
  def missing
    compiler = RbConfig::CONFIG["CC"].shellsplit.first
    return "Ruby's headers are not installed" unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))

    "there is no C compiler (#{compiler}) or no make" unless [compiler, "make"].all? { |command| command?(command) }
  end

  # @return [String] the compiled library
  # @raise [CompilationFailed]
  def library
    FileUtils.mkdir_p(FOLDER)
    File.open(File.join(FOLDER, "lock"), File::CREAT | File::RDWR) do |lock|
      lock.flock(File::LOCK_EX)
      compile unless FileUtils.uptodate?(LIBRARY, [SOURCE])
    end
    LIBRARY
  end

  def compile
    run(RbConfig.ruby, "-rmkmf", "-e", 'create_makefile("hostile", ARGV.first)', File.dirname(SOURCE))
    run("make")
  end

  def run(*command)
    output, status = Open3.capture2e({ "RUBYOPT" => nil, "MAKEFLAGS" => nil }, *command, chdir: FOLDER)
    raise CompilationFailed, output unless status.success?
  end

  def command?(name)
    ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.expand_path(name, folder)) }
  end
end
