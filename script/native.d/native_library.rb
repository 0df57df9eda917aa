# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require_relative "zig"

# The extension as in a precompiled gem: for one minor version of Ruby, and for other machines than this.
module NativeLibrary
  NAME = "ruby_memprofiler_pprof.#{RbConfig::CONFIG["DLEXT"]}".freeze
  CRATE = "ext/ruby_memprofiler_pprof"
  # The program that works on other processes, the same for every Ruby; only for Linux.
  TOOL = "memprofiler-attach"
  TARGET = "tmp/native/target"
  # The oldest version that Rust's standard library supports: Debian 8, Ubuntu 14.04, RHEL 7.
  GLIBC = "2.17"

  module_function

  # @return [String] RubyGems' name for this platform; versions before 3.3.22 do not say which libc it has
  def platform
    local = Gem::Platform.local
    libc = glibc? ? "gnu" : "musl" if local.os == "linux"
    [local.cpu, local.os, libc].compact.join("-")
  end

  def glibc?
    RbConfig::CONFIG["host_os"].then { |os| os.include?("linux") && !os.include?("musl") }
  end

  # @return [String] as in "3.4"
  def minor
    RUBY_VERSION[/\A\d+\.\d+/]
  end

  def path(minor)
    "pkg/native/#{platform}/#{minor}/#{NAME}"
  end

  # @return [Hash{String => String}] paths by minor; the platform may differ from this one
  def built(platform)
    Dir["pkg/native/#{platform}/*/ruby_memprofiler_pprof.*"]
      .to_h { |file| [File.basename(File.dirname(file)), file] }
      .sort_by { |minor, _| Gem::Version.new(minor) }.to_h
  end

  # @return [String, nil] the path of TOOL for a platform, if there is one
  def tool(platform)
    "pkg/native/#{platform}/#{TOOL}" if platform.include?("linux")
  end

  # Also writes the tool.
  # @return [String] the path of the new library for the running Ruby
  def build
    # Not in the root of the checkout: below it, zig reports the paths of its headers relative to where it runs, and
    # they are then searched from elsewhere.
    system(environment, *command, chdir: CRATE, exception: true)
    # Cargo names it as Rust does, and puts it into a directory with the target's name if a target was requested.
    library = Dir["#{TARGET}/{,*/}release/libruby_memprofiler_pprof.{so,dylib}"].max_by { |file| File.mtime(file) }
    if tool(platform)
      program = File.join(File.dirname(library), TOOL)
      write(tool(platform), File.binread(program)).tap { |file| check_glibc(file) if glibc? }
    end
    write(path(minor), File.binread(library)).tap { |file| check_glibc(file) if glibc? }
  end

  def write(file, content)
    FileUtils.mkdir_p(File.dirname(file))
    # A process that has the old file mapped keeps it.
    FileUtils.rm_f(file)
    File.binwrite(file, content, perm: 0o755)
    file
  end

  def command
    cargo, *target = glibc? ? [Zig.cargo, "--target", "#{host}.#{GLIBC}"] : ["cargo"]
    packages = ["ruby_memprofiler_pprof", *("memprofiler_attach" if tool(platform))]
    [cargo, "build", "--locked", "--release", *packages.flat_map { |name| ["--package", name] },
     "--target-dir", File.expand_path(TARGET), *target]
  end

  # Function names are kept, for Ruby's crash reports.
  def environment
    variables = { "RUBY" => RbConfig.ruby, "CARGO_PROFILE_RELEASE_STRIP" => "debuginfo" }
    return variables.merge(Zig.environment) if glibc?
    return variables unless platform.end_with?("musl")

    # Rust links statically for musl, which gives neither libraries nor build scripts that can load libclang.
    variables.merge("RUSTFLAGS" => "#{ENV.fetch("RUSTFLAGS", nil)} -C target-feature=-crt-static".strip)
  end

  def host
    `rustc -vV`[/^host: (.*)/, 1] || abort("script/native: rustc does not name its host")
  end

  # The linker has stored the glibc versions of the required symbols as strings.
  def check_glibc(file)
    newest = File.binread(file).scan(/GLIBC_(\d+(?:\.\d+)+)/).flatten.map { |version| Gem::Version.new(version) }.max
    return if newest && newest <= Gem::Version.new(GLIBC)

    abort "script/native: #{file} needs glibc #{newest.inspect}, newer than #{GLIBC}"
  end
end
