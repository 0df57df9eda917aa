//! What has to be asked of Ruby before the heap is walked.

use super::check::{self, Checked};
use super::threads::Threads;
use super::types::DataTypes;
use crate::vm::{gc, lossy, protect};
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::{Error, Module, RArray, Ruby, Value};
use rb_sys::{ID, VALUE};
use std::ffi::CString;

/// Global variables that are not read: their values are not kept in them, but found or made when they are read.
const COMPUTED: [&str; 29] = [
    "$ARGV",
    "$CHILD_STATUS",
    "$DEFAULT_INPUT",
    "$DEFAULT_OUTPUT",
    "$ERROR_INFO",
    "$ERROR_POSITION",
    "$FIELD_SEPARATOR",
    "$FILENAME",
    "$FS",
    "$IGNORECASE",
    "$INPUT_LINE_NUMBER",
    "$INPUT_RECORD_SEPARATOR",
    "$KCODE",
    "$LAST_MATCH_INFO",
    "$LAST_PAREN_MATCH",
    "$LAST_READ_LINE",
    "$MATCH",
    "$NR",
    "$OFS",
    "$ORS",
    "$OUTPUT_FIELD_SEPARATOR",
    "$OUTPUT_RECORD_SEPARATOR",
    "$PID",
    "$POSTMATCH",
    "$PREMATCH",
    "$PROCESS_ID",
    "$PROGRAM_NAME",
    "$RS",
    "$SAFE",
];

/// What is known before the heap is walked: the threads and the names of global variables, and what can be read at all.
/// Variables that come later have no names.
#[derive(Debug)]
pub struct Prepared {
    pub(super) checked: Checked,
    pub(super) globals: Vec<(VALUE, String)>,
    pub(super) threads: Threads,
    /// The current directory, with a slash at its end.
    pub(super) directory: String,
    pub(super) ids: Ids,
    /// This gem's module; 0 if it has gone.
    pub(super) own_module: VALUE,
    gc: &'static gc::Info,
}

/// Names that the VM uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids {
    /// Of a Struct's class: its members.
    pub members: ID,
    /// Of a singleton class, up to 3.1: its object.
    #[cfg(not(ruby_gte_3_2))]
    pub attached: ID,
    /// Of a Thread: the Hash of its thread variables.
    pub variables: ID,
}

impl Prepared {
    /// Asks Ruby. The first call also compares what is read with what Ruby says; what differs stays unknown.
    ///
    /// # Errors
    /// What signals or other threads raise meanwhile.
    pub fn new(ruby: &Ruby) -> Result<Self, Error> {
        let id = |name: &'static str| protect(|| ruby.intern(name).as_raw());
        let ids = Ids {
            members: id("__members__")?,
            #[cfg(not(ruby_gte_3_2))]
            attached: id("__attached__")?,
            variables: id("locals")?,
        };
        let checked = check::run(ruby)?;
        let directory = std::env::current_dir().map(|path| format!("{}/", path.display())).unwrap_or_default();
        let threads = Threads::new(ruby)?;
        let own_module = ruby.class_object().const_get::<_, Value>("MemprofilerPprof").map_or(0, |own| own.as_raw());
        let gc = gc::Info::get(ruby)?;
        // Last, since their values are known by their addresses.
        Ok(Self { checked, globals: globals()?, threads, directory, ids, own_module, gc })
    }

    /// Finishes a lazy sweep, and with it a compaction that may be under way: what is dead is then gone, and all else is
    /// where it belongs. Without it, a walk may find dead objects through old values on machine stacks, and crash. A
    /// copy of the process can take that risk once, and save the program the time that a sweep takes.
    pub fn settle(&self, ruby: &Ruby) {
        self.gc.settle(ruby);
    }

    /// Whether there is a sweep to finish.
    pub fn is_sweeping(&self) -> bool {
        self.gc.is_sweeping()
    }

    /// The program's directory, with a slash at its end.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    pub(super) fn types(&self) -> &DataTypes {
        &self.checked.types
    }
}

fn globals() -> Result<Vec<(VALUE, String)>, Error> {
    // SAFETY: the GVL is held; it returns an Array of Symbols.
    let list = protect(|| unsafe { rb_sys::rb_f_global_variables() })?;
    // SAFETY: a live Array.
    let Some(list) = RArray::from_value(unsafe { magnus::rb_sys::FromRawValue::from_raw(list) }) else {
        return Ok(Vec::new());
    };
    let mut globals = Vec::new();
    for index in 0..list.len() {
        let name = lossy::symbol(list.entry(index as isize)?);
        if !is_plain(&name) {
            continue;
        }
        let Ok(c_name) = CString::new(name.as_str()) else { continue };
        // SAFETY: the GVL is held; it reads the variable of that name.
        if let Ok(value) = protect(|| unsafe { rb_sys::rb_gv_get(c_name.as_ptr()) }) {
            globals.push((value, name));
        }
    }
    Ok(globals)
}

/// Whether a global variable is one that a program has assigned, or that is read as simply.
fn is_plain(name: &str) -> bool {
    let mut rest = name.chars().skip(1);
    rest.next().is_some_and(|first| first.is_alphabetic() || first == '_' && rest.next().is_some())
        && !COMPUTED.contains(&name)
}
