# frozen_string_literal: true

require "mkmf"

# As in Cargo.toml.
RUST_VERSION = "1.85"

# With the rb_sys gem this uses its Makefile, which can cross-compile; without it, a short one that only calls cargo.
# Both build the same crate.
begin
  require "rb_sys/mkmf"
rescue LoadError
  found = find_executable("cargo") ? `cargo --version`[/\d+\.\d+/] : "no cargo"
  unless found && Gem::Version.correct?(found) && Gem::Version.new(found) >= Gem::Version.new(RUST_VERSION)
    abort "Rust #{RUST_VERSION} or newer is needed, but there is #{found || "no working cargo"}: install it, for " \
          "instance with rustup, then install this gem again"
  end

  host_os = RbConfig::CONFIG["host_os"]
  cargo_lib = host_os.match?(/darwin/) ? "dylib" : "so"
  manifest = File.expand_path("Cargo.toml", __dir__)
  # Below the build directory, so that installing from a read-only or shared checkout works.
  own_target = File.join(Dir.pwd, "target")
  target = ENV["CARGO_TARGET_DIR"].to_s.then { |shared| shared.empty? ? own_target : shared }
  # RubyGems and Bundler build in the installed gem's directory, and keep what is left there: hundreds of megabytes.
  tidy = "\trm -rf \"#{own_target}\"" if File.identical?(Dir.pwd, __dir__)
  # By default Rust's toolchains for musl build static programs, and no libraries.
  musl = "export RUSTFLAGS := $(RUSTFLAGS) -C target-feature=-crt-static" if host_os.match?(/musl/)

  # Replaces the library atomically, never overwrites it: one process may have it mapped, another may be loading it.
  File.write("Makefile", <<~MAKEFILE)
    SHELL = /bin/sh
    DESTDIR =
    prefix = #{RbConfig::CONFIG["prefix"]}
    sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}
    target_prefix = /ruby_memprofiler_pprof
    RUBYARCHDIR = $(sitearchdir)$(target_prefix)
    DLLIB = ruby_memprofiler_pprof.#{RbConfig::CONFIG["DLEXT"]}
    INSTALLED = $(DESTDIR)$(RUBYARCHDIR)/$(DLLIB)
    CARGO = cargo
    export RUBY = #{RbConfig.ruby}
    export CARGO_TARGET_DIR = #{target}
    #{musl}

    all: $(DLLIB)

    $(DLLIB): FORCE
    \t$(CARGO) rustc --locked --lib --crate-type cdylib --profile release --manifest-path "#{manifest}"
    \tcp "$(CARGO_TARGET_DIR)/release/libruby_memprofiler_pprof.#{cargo_lib}" $@.$$$$ && mv -f $@.$$$$ $@

    install: $(DLLIB)
    \tmkdir -p "$(DESTDIR)$(RUBYARCHDIR)"
    \tcp $(DLLIB) "$(INSTALLED).$$$$" && mv -f "$(INSTALLED).$$$$" "$(INSTALLED)"
    #{tidy}

    clean:
    \trm -rf $(DLLIB) "#{own_target}"

    distclean: clean
    \trm -f Makefile mkmf.log

    FORCE:
    .PHONY: all install clean distclean FORCE
  MAKEFILE
else
  create_rust_makefile("ruby_memprofiler_pprof/ruby_memprofiler_pprof") do |builder|
    builder.extra_cargo_args += ["--locked"]
  end
end
