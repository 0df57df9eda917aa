# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "rubygems/user_interaction"
require "tmpdir"

# The gem for those who do not compile: the source gem's files without what is compiled, but with a library for each
# minor version of Ruby that it is for.
class NativeGem
  # Older ones take a gem for musl for one for glibc.
  RUBYGEMS = ">= 3.3.22"

  # @param source [Gem::Specification] the source gem's
  # @param platform [String] as in "x86_64-linux-gnu"
  # @param libraries [Hash{String => String}] paths by minor version of Ruby
  def initialize(source, platform, libraries)
    raise ArgumentError, "no library for #{platform}: build one with `script/native library`" if libraries.empty?

    @source = source
    @platform = platform
    @libraries = libraries
  end

  # @return [Gem::Specification] RubyGems takes the source gem where this one does not fit
  def spec
    @spec ||= @source.dup.tap do |spec|
      spec.platform = @platform
      spec.extensions = []
      spec.files = (@source.files.grep_v(%r{\A(ext/|Cargo\.)}) + contents.keys).sort
      spec.required_ruby_version = ruby_versions
      spec.required_rubygems_version = RUBYGEMS if @platform.include?("linux")
    end
  end

  # @param directory [String] where the gem goes
  # @return [String] its path
  def build(directory)
    file = File.expand_path("#{spec.name}-#{spec.version}-#{@platform}.gem", directory)
    FileUtils.mkdir_p(directory)
    Dir.mktmpdir("native") do |staged|
      stage(staged)
      # Strictly, so that warnings are errors. Old RubyGems would name the file otherwise.
      package = -> { Gem::Package.build(spec, false, true, file) }
      Dir.chdir(staged) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new, &package) }
    end
    file
  end

  private

  # What is in the gem by another name than in the checkout.
  def contents
    @libraries.to_h { |minor, library| ["lib/#{@source.name}/#{minor}/#{File.basename(library)}", library] }
  end

  def ruby_versions
    minors = @libraries.keys.map { |minor| Gem::Version.new(minor) }.sort
    # The library's interface to Ruby changes with the minor version; `dev` so that previews of the next are excluded.
    [">= #{minors.first}", "< #{Gem::Version.new("#{minors.last}.0").bump}.dev"]
  end

  def stage(directory)
    root = File.dirname(@source.loaded_from)
    spec.files.each do |file|
      to = File.join(directory, file)
      FileUtils.mkdir_p(File.dirname(to))
      FileUtils.cp(contents.fetch(file) { File.join(root, file) }, to, preserve: true)
    end
  end
end
