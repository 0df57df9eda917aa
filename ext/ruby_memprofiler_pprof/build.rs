//! Passes on to the compiler the Ruby version (`cfg(ruby_gte_3_3)` and the like) and the linker arguments that a
//! library loaded by Ruby needs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = rb_sys_env::activate()?;
    let version = env.ruby_version();
    println!("cargo:rustc-env=RUBY_MAJOR={}", version.major());
    println!("cargo:rustc-env=RUBY_MINOR={}", version.minor());
    Ok(())
}
