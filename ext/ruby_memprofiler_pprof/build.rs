//! Passes on to the compiler the Ruby version (`cfg(ruby_gte_3_3)` and the like) and the linker arguments that a
//! library loaded by Ruby needs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = rb_sys_env::activate()?;
    let version = env.ruby_version();
    println!("cargo:rustc-env=RUBY_MAJOR={}", version.major());
    println!("cargo:rustc-env=RUBY_MINOR={}", version.minor());
    // Not whatever is in this directory, where a gem's Makefile puts what it makes. What is known of Ruby comes from
    // rb-sys, after which Cargo runs this again anyway.
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
