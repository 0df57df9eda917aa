//! `MemprofilerPprof.names_in`, which lists a directory in one turn without the GVL.
//!
//! Ruby 4.0 gives the GVL away for each name (`READDIR` in dir.c). Beside a thread that computes, its next turn comes
//! after 100 ms: 17 s for a /tmp with 170 files.

use crate::vm::gvl;
use magnus::{Error, RArray, RModule, RString, Ruby, function};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Defines the function of the module.
pub fn init(module: RModule) -> Result<(), Error> {
    module.define_module_function("names_in", function!(names_in, 1))
}

/// The names of the files in a directory, in no order; none if it cannot be read.
fn names_in(ruby: &Ruby, directory: RString) -> Result<RArray, Error> {
    // SAFETY: no Ruby code runs while the bytes are copied.
    let directory = unsafe { directory.as_slice() }.to_vec();
    let names = gvl::without_gvl(|| list(Path::new(OsStr::from_bytes(&directory))));
    let array = ruby.ary_new_capa(names.len());
    for name in names {
        array.push(ruby.enc_str_new(name.into_vec(), ruby.filesystem_encoding()))?;
    }
    Ok(array)
}

fn list(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}
