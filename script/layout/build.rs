//! Lists the Ruby releases that rbspy-ruby-structs has bindings for, as calls of the macro in src/bindings.rs.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The minor versions to generate for; src/main.rs says how to add one.
const MINORS: [(u32, u32); 5] = [(3, 1), (3, 2), (3, 3), (3, 4), (4, 0)];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let releases = releases(&fs::read_to_string(bindings()?)?);
    let last = MINORS[MINORS.len() - 1];
    if let Some((major, minor, _)) = releases.iter().find(|(major, minor, _)| (*major, *minor) > last) {
        println!("cargo::warning=Ruby {major}.{minor} has bindings but is not among MINORS in script/layout/build.rs");
    }
    let calls: String = releases
        .iter()
        .filter(|(major, minor, _)| MINORS.contains(&(*major, *minor)))
        .map(|(major, minor, patch)| format!("release!({major} {minor} {patch} ruby_{major}_{minor}_{patch}),\n"))
        .collect();
    fs::write(Path::new(&env::var("OUT_DIR")?).join("releases.rs"), format!("vec![\n{calls}]\n"))?;
    Ok(())
}

/// The crate root of rbspy-ruby-structs, according to cargo.
fn bindings() -> Result<PathBuf, Box<dyn Error>> {
    let metadata = Command::new(env::var("CARGO")?).args(["metadata", "--format-version=1", "--offline"]).output()?;
    if !metadata.status.success() {
        return Err(String::from_utf8(metadata.stderr)?.into());
    }
    let metadata = String::from_utf8(metadata.stdout)?;
    let mut roots = metadata.split("\"src_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let root = roots.find(|path| path.contains("rbspy-ruby-structs") && path.ends_with("/src/lib.rs"));
    Ok(root.ok_or("cargo metadata does not say where rbspy-ruby-structs is")?.into())
}

/// The releases of the modules that `source` declares, oldest first.
fn releases(source: &str) -> BTreeSet<(u32, u32, u32)> {
    let modules = source.lines().filter_map(|line| line.strip_prefix("pub mod ruby_")?.strip_suffix(';'));
    let release = |module: &str| {
        let mut numbers = module.split('_').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    };
    modules.filter_map(release).collect()
}
