# frozen_string_literal: true

# zig as a linker: it knows the symbols of every glibc release. cargo-zigbuild makes cargo use it.
module Zig
  PACKAGES = %w[cargo-zigbuild==0.24.0 ziglang==0.17.0].freeze
  OWN = File.expand_path("../../tmp/native/zig", __dir__)
  # Where script/matrix mounts the machine's tools.
  MOUNTED = "/opt/tools"

  module_function

  def install
    system("python3", "-m", "pip", "install", "--quiet", "--upgrade", "--target", OWN, *PACKAGES, exception: true)
  end

  # @return [String, nil] the directory with zig
  def directory
    [MOUNTED, OWN].find { |directory| File.exist?(File.join(directory, "bin/cargo-zigbuild")) }
  end

  def found?
    !directory.nil?
  end

  def cargo
    found? || abort("script/native: there is no zig: run `script/native zig`")
    File.join(directory, "bin/cargo-zigbuild")
  end

  def environment
    { "CARGO_ZIGBUILD_ZIG_PATH" => File.join(directory, "ziglang/zig") }
  end
end
