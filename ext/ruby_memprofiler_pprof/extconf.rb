# frozen_string_literal: true

require "mkmf"

# With the rb_sys gem its Makefile is used, which knows how to cross-compile; without it, a short one that only calls
# cargo. Both build the same crate.
begin
  require "rb_sys/mkmf"
rescue LoadError
  abort "cargo was not found: install Rust 1.85 or newer, then install this gem again" unless find_executable("cargo")

  # Below the build directory, so that installing from a read-only or shared checkout works.
  target_dir = ENV.fetch("CARGO_TARGET_DIR") { File.join(Dir.pwd, "target") }
  manifest = File.expand_path("Cargo.toml", __dir__)
  cargo_lib = RbConfig::CONFIG["host_os"].match?(/darwin/) ? "dylib" : "so"

  # A library is replaced, never overwritten: a process that runs has it mapped.
  File.write("Makefile", <<~MAKEFILE)
    SHELL = /bin/sh
    DESTDIR =
    prefix = #{RbConfig::CONFIG["prefix"]}
    sitearchdir = #{RbConfig::CONFIG["sitearchdir"]}
    target_prefix = /ruby_memprofiler_pprof
    RUBYARCHDIR = $(sitearchdir)$(target_prefix)
    DLLIB = ruby_memprofiler_pprof.#{RbConfig::CONFIG["DLEXT"]}
    CARGO = cargo
    export RUBY = #{RbConfig.ruby}
    export CARGO_TARGET_DIR = #{target_dir}

    all: $(DLLIB)

    $(DLLIB): FORCE
    \t$(CARGO) rustc --locked --lib --crate-type cdylib --profile release --manifest-path "#{manifest}"
    \trm -f $@
    \tcp "$(CARGO_TARGET_DIR)/release/libruby_memprofiler_pprof.#{cargo_lib}" $@

    install: $(DLLIB)
    \tmkdir -p "$(DESTDIR)$(RUBYARCHDIR)"
    \trm -f "$(DESTDIR)$(RUBYARCHDIR)/$(DLLIB)"
    \tcp $(DLLIB) "$(DESTDIR)$(RUBYARCHDIR)/"

    clean:
    \trm -rf $(DLLIB) "$(CARGO_TARGET_DIR)"

    distclean: clean
    \trm -f Makefile mkmf.log

    FORCE:
    .PHONY: all install clean distclean FORCE
  MAKEFILE
else
  create_rust_makefile("ruby_memprofiler_pprof/ruby_memprofiler_pprof")
end
