# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "shellwords"

# An extension in C for specs: spec/support/NAME/NAME.c. It is compiled at first use, in a separate folder for each
# Ruby.
class CompiledExtension
  class CompilationFailed < StandardError; end

  # @return [String, nil] why none can be compiled here
  def self.missing
    compiler = RbConfig::CONFIG["CC"].shellsplit.first
    return "Ruby's headers are not installed" unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))

    "there is no C compiler (#{compiler}) or no make" unless [compiler, "make"].all? { |command| command?(command) }
  end

  def self.command?(name)
    ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.expand_path(name, folder)) }
  end
  private_class_method :command?

  def initialize(name)
    @name = name
    @source = File.expand_path("#{name}/#{name}.c", __dir__)
    @folder = File.expand_path("../../tmp/#{name}-#{RUBY_VERSION}-#{RUBY_PLATFORM}", __dir__)
  end

  # @return [String] the compiled library
  # @raise [CompilationFailed]
  def library
    library = File.join(@folder, "#{@name}.#{RbConfig::CONFIG["DLEXT"]}")
    FileUtils.mkdir_p(@folder)
    File.open(File.join(@folder, "lock"), File::CREAT | File::RDWR) do |lock|
      lock.flock(File::LOCK_EX)
      compile unless FileUtils.uptodate?(library, [@source])
    end
    library
  end

  private

  def compile
    run(RbConfig.ruby, "-rmkmf", "-e", "create_makefile(*ARGV)", @name, File.dirname(@source))
    run("make")
  end

  def run(*command)
    output, status = Open3.capture2e({ "RUBYOPT" => nil, "MAKEFLAGS" => nil }, *command, chdir: @folder)
    raise CompilationFailed, output unless status.success?
  end
end
