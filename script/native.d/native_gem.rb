# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "rubygems/user_interaction"
require "tmpdir"

# The precompiled gem: the source gem's files without the sources to compile, plus a library for each supported minor
# version of Ruby.
class NativeGem
  # Older versions confuse a gem for musl with one for glibc.
  RUBYGEMS = ">= 3.3.22"

  # @param source [Gem::Specification] the source gem's
  # @param platform [String] as in "x86_64-linux-gnu"
  # @param libraries [Hash{String => String}] paths by minor version of Ruby
  # @param tool [String, nil] the path of the program that works on other processes; nil where there is none
  def initialize(source, platform, libraries, tool = nil)
    raise ArgumentError, "no library for #{platform}: build one with `script/native library`" if libraries.empty?

    @source = source
    @platform = platform
    @libraries = libraries
    @tool = tool
  end

  # @return [Gem::Specification] RubyGems falls back to the source gem where this one does not fit
  def spec
    @spec ||= @source.dup.tap do |spec|
      spec.platform = @platform
      spec.extensions = []
      spec.files = (@source.files.grep_v(%r{\A(ext/|Cargo\.)}) + contents.keys).sort
      spec.required_ruby_version = ruby_versions
      spec.required_rubygems_version = RUBYGEMS if @platform.include?("linux")
    end
  end

  # @param directory [String] where to put the gem
  # @return [String] its path
  def build(directory)
    file = File.expand_path("#{spec.name}-#{spec.version}-#{@platform}.gem", directory)
    FileUtils.mkdir_p(directory)
    Dir.mktmpdir("native") do |staged|
      stage(staged)
      # Strict, so that warnings are errors. An old RubyGems would name the file differently.
      package = -> { Gem::Package.build(spec, false, true, file) }
      Dir.chdir(staged) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new, &package) }
    end
    file
  end

  private

  # Files with different names in the gem and in the checkout.
  def contents
    directory = "lib/#{@source.name}"
    libraries = @libraries.to_h { |minor, library| ["#{directory}/#{minor}/#{File.basename(library)}", library] }
    @tool ? libraries.merge("#{directory}/#{File.basename(@tool)}" => @tool) : libraries
  end

  def ruby_versions
    minors = @libraries.keys.map { |minor| Gem::Version.new(minor) }.sort
    # The library's interface to Ruby changes with the minor version; `dev` excludes previews of the next one.
    [">= #{minors.first}", "< #{Gem::Version.new("#{minors.last}.0").bump}.dev"]
  end

  def stage(directory)
    root = File.dirname(@source.loaded_from)
    spec.files.each do |file|
      to = File.join(directory, file)
      FileUtils.mkdir_p(File.dirname(to))
      FileUtils.cp(contents.fetch(file) { File.join(root, file) }, to, preserve: true)
      # GitHub's artifacts lose it.
      FileUtils.chmod(0o755, to) if contents.key?(file)
    end
  end
end
