//! Generates `ext/ruby_layout/src/layout.rs`: where CRuby keeps what the frame walker reads.
//!
//! The structs are private to CRuby, so its installed headers do not declare them. The crate rbspy-ruby-structs has
//! them for every patch release, translated by bindgen; bindings.rs takes offsets, sizes and enum values from there.
//! by_hand.rs has the few figures that the crate lacks (macros, flags of frames).
//!
//!     cargo run -- generate          write layout.rs
//!     cargo run -- check             fail unless layout.rs is what `generate` would write
//!     cargo run -- assertions 4.0    print a C program that compiles only if by_hand.rs is right for that minor
//!
//! Both `generate` and `check` fail when two patch releases of one minor disagree. The first build takes about 40 s:
//! the crate has no option to leave out the older Rubies.
//!
//! # A new patch release
//! `cargo update`, or a newer version of the crate in Cargo.toml, and `generate`: build.rs finds the new modules.
//!
//! # A new minor
//! 1. Update the crate to a version that has it, and add it to `MINORS` in build.rs.
//! 2. Compile the assertions against its source, in a tree where `make` has run so that id.h and config.h exist:
//!    `cargo run -- assertions 4.1 | cc -fsyntax-only -w -xc -I$ruby -I$ruby/include -I$ruby/.ext/include/$arch -`
//! 3. Read what changed in vm_core.h, method.h and `rb_profile_frames` (vm_backtrace.c): an offset can stay the same
//!    and change its meaning.
//! 4. `generate`, and run the specs under that Ruby: the walker tests itself against `rb_profile_frames` at start.

mod bindings;
mod by_hand;
mod entry;
mod render;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

/// The generated file.
const LAYOUT: &str = "ext/ruby_layout/src/layout.rs";

fn main() -> ExitCode {
    let mode = env::args().nth(1).unwrap_or_default();
    let done = match mode.as_str() {
        "generate" => generate(),
        "check" => check(),
        "assertions" => assertions(env::args().nth(2).unwrap_or_default().as_str()),
        _ => Err("usage: cargo run -- generate | check | assertions MINOR".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), String> {
    let text = render::layout(&bindings::releases(), &by_hand::entries())?;
    fs::write(root().join(LAYOUT), text).map_err(|error| format!("{LAYOUT}: {error}"))
}

fn check() -> Result<(), String> {
    let releases = bindings::releases();
    let expected = render::layout(&releases, &by_hand::entries())?;
    let actual = fs::read_to_string(root().join(LAYOUT)).map_err(|error| format!("{LAYOUT}: {error}"))?;
    if actual == expected {
        println!("{LAYOUT} agrees with the bindings of {} releases of Ruby", releases.len());
        return Ok(());
    }
    let same = actual.lines().zip(expected.lines()).take_while(|(actual, expected)| actual == expected).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(no more lines)").to_owned();
    Err(format!(
        "{LAYOUT}:{}: this differs from what script/layout generates: look why, then `cargo run -- generate` there\n\
         is:        {}\nshould be: {}",
        same + 1,
        line(&actual),
        line(&expected)
    ))
}

fn assertions(minor: &str) -> Result<(), String> {
    let (major, minor) = minor
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or("for which minor, such as 3.1?")?;
    print!("{}", by_hand::assertions((major, minor)));
    Ok(())
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
