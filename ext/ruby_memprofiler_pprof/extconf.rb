# frozen_string_literal: true

require "mkmf"

# As in Cargo.toml.
RUST_VERSION = "1.85"

# The tool that works on other processes by their PID: only Linux has what it needs.
TOOL = "memprofiler-attach"
# Beside the library: the Ruby that it fits.
BUILT_FOR = "built_for"
host_os = RbConfig::CONFIG["host_os"]
with_tool = host_os.include?("linux")
manifest = File.expand_path("../../Cargo.toml", __dir__)
minor = RbConfig::CONFIG.values_at("MAJOR", "MINOR").join(".")

# With the rb_sys gem this uses its Makefile, which can cross-compile; without it, a short one that only calls cargo.
# Both build the same crates.
begin
  require "rb_sys/mkmf"
rescue LoadError
  found = find_executable("cargo") ? `cargo --version`[/\d+\.\d+/] : "no cargo"
  unless found && Gem::Version.correct?(found) && Gem::Version.new(found) >= Gem::Version.new(RUST_VERSION)
    abort "Rust #{RUST_VERSION} or newer is needed, but there is #{found || "no working cargo"}: install it, for " \
          "instance with rustup, then install this gem again"
  end

  cargo_lib = host_os.match?(/darwin/) ? "dylib" : "so"
  # In one go, so that crates which both use are compiled once.
  packages = "--package ruby_memprofiler_pprof#{" --package memprofiler_attach" if with_tool}"
  # Below the build directory, so that installing from a read-only or shared checkout works.
  own_target = File.join(Dir.pwd, "target")
  target = ENV["CARGO_TARGET_DIR"].to_s.then { |shared| shared.empty? ? own_target : shared }
  # RubyGems and Bundler build in the installed gem's directory, and keep what is left there: hundreds of megabytes.
  installs = File.identical?(Dir.pwd, __dir__)
  tidy = "\trm -rf \"#{own_target}\" $(PRODUCTS)" if installs
  # Line numbers of the Rust code, which only those who change it need, are five sixths of the library.
  strip = "export CARGO_PROFILE_RELEASE_STRIP ?= debuginfo" if installs
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
    INSTALLED = $(DESTDIR)$(RUBYARCHDIR)
    PRODUCTS = $(DLLIB) #{BUILT_FOR} #{TOOL if with_tool}
    CARGO = cargo
    export RUBY = #{RbConfig.ruby}
    export CARGO_TARGET_DIR = #{target}
    #{musl}
    #{strip}

    all: $(PRODUCTS)

    cargo: FORCE
    \t$(CARGO) build --locked --release --manifest-path "#{manifest}" #{packages}

    $(DLLIB): cargo
    \tcp "$(CARGO_TARGET_DIR)/release/libruby_memprofiler_pprof.#{cargo_lib}" $@.$$$$ && mv -f $@.$$$$ $@

    #{BUILT_FOR}: FORCE
    \techo #{minor} > $@

    #{TOOL}: cargo
    \tcp "$(CARGO_TARGET_DIR)/release/#{TOOL}" $@.$$$$ && mv -f $@.$$$$ $@

    install: $(PRODUCTS)
    \tmkdir -p "$(INSTALLED)"
    \tfor file in $(PRODUCTS); do \\
    \t  cp $$file "$(INSTALLED)/$$file.$$$$" && mv -f "$(INSTALLED)/$$file.$$$$" "$(INSTALLED)/$$file" || exit 1; \\
    \tdone
    #{tidy}

    clean:
    \trm -rf $(PRODUCTS) "#{own_target}"

    distclean: clean
    \trm -f Makefile mkmf.log

    FORCE:
    .PHONY: all cargo install clean distclean FORCE
  MAKEFILE
else
  create_rust_makefile("ruby_memprofiler_pprof/ruby_memprofiler_pprof") do |builder|
    builder.extra_cargo_args += ["--locked"]
  end
  File.write("Makefile", <<~MAKEFILE, mode: "a")

    install-so: install-built-for
    install-built-for: $(DLLIB)
    \t$(MAKEDIRS) $(RUBYARCHDIR)
    \techo #{minor} > $(RUBYARCHDIR)/#{BUILT_FOR}
    .PHONY: install-built-for
  MAKEFILE
  File.write("Makefile", <<~MAKEFILE, mode: "a") if with_tool

    install-so: install-tool
    install-tool: $(DLLIB)
    \t$(CARGO) build --locked $(RB_SYS_CARGO_PROFILE_FLAG) --manifest-path "#{manifest}" --package memprofiler_attach \\
    \t  --target-dir $(RB_SYS_CARGO_TARGET_DIR) $(if $(CARGO_BUILD_TARGET),--target $(CARGO_BUILD_TARGET))
    \t$(MAKEDIRS) $(RUBYARCHDIR)
    \t$(INSTALL_PROG) $(RUSTLIBDIR)/#{TOOL} $(RUBYARCHDIR)
    .PHONY: install-tool
  MAKEFILE
end
