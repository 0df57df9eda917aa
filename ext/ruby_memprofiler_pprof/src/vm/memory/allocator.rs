//! Which malloc the process uses, and what that says of itself.

use crate::vm::symbols::lookup;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::null_mut;

/// `struct mallinfo2`.
#[repr(C)]
pub struct MallInfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// `struct mallinfo2 mallinfo2(void)`, glibc from 2.33 on.
pub type MallInfo2Function = unsafe extern "C" fn() -> MallInfo2;
/// `int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length)`, jemalloc.
pub type MallCtl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
/// `int MallocExtension_GetNumericProperty(const char *property, size_t *value)`, gperftools' tcmalloc.
pub type NumericProperty = unsafe extern "C" fn(*const c_char, *mut usize) -> c_int;

/// The malloc of this process.
#[derive(Debug, Clone, Copy)]
pub enum Allocator {
    /// With its statistics, from version 2.33 on.
    Glibc(Option<MallInfo2Function>),
    /// jemalloc.
    Jemalloc(MallCtl),
    /// gperftools' tcmalloc.
    Tcmalloc(NumericProperty),
    /// It keeps no statistics.
    Musl,
    /// Another one.
    Unknown,
}

/// What an allocator says of itself, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// In use. For glibc in arenas only, without blocks that have mappings of their own.
    pub used: u64,
    /// In memory at most; of glibc's, all blocks that have mappings of their own.
    pub resident: u64,
}

impl Allocator {
    /// Finds out whose `malloc` it is: the one in the library that has the statistics, too.
    pub fn find() -> Self {
        let malloc = library(lookup(c"malloc"));
        let beside = |symbol: &CStr| lookup(symbol).filter(|&found| malloc.is_some() && library(Some(found)) == malloc);
        // SAFETY: the functions have these types in the libraries that have them beside malloc.
        unsafe {
            if let Some(function) = beside(c"mallctl") {
                return Self::Jemalloc(std::mem::transmute::<*mut c_void, MallCtl>(function));
            }
            if let Some(function) = beside(c"MallocExtension_GetNumericProperty") {
                return Self::Tcmalloc(std::mem::transmute::<*mut c_void, NumericProperty>(function));
            }
            if beside(c"gnu_get_libc_version").is_some() {
                let function = beside(c"mallinfo2");
                return Self::Glibc(function.map(|found| std::mem::transmute::<*mut c_void, MallInfo2Function>(found)));
            }
        }
        if cfg!(target_env = "musl") && malloc.is_some() { Self::Musl } else { Self::Unknown }
    }

    /// Its name and version, as far as they are known.
    pub fn name(self) -> String {
        match self {
            Self::Glibc(_) => glibc_version().map_or_else(|| "glibc".into(), |version| format!("glibc {version}")),
            Self::Jemalloc(mallctl) => {
                jemalloc_version(mallctl).map_or_else(|| "jemalloc".into(), |version| format!("jemalloc {version}"))
            }
            Self::Tcmalloc(_) => "tcmalloc".into(),
            Self::Musl => "musl".into(),
            Self::Unknown => "unknown".into(),
        }
    }

    /// What it says; None if it says nothing. Takes its locks. glibc goes through all blocks that are free, which can
    /// take milliseconds.
    pub fn statistics(self) -> Option<Statistics> {
        match self {
            Self::Glibc(function) => {
                // SAFETY: glibc's function of this type, which may be called by any thread.
                let MallInfo2 { uordblks, hblkhd, .. } = unsafe { function?() };
                Some(Statistics { used: uordblks as u64, resident: hblkhd as u64 })
            }
            Self::Jemalloc(mallctl) => {
                // Statistics are as of the last change of this number.
                let mut epoch: u64 = 1;
                control(mallctl, c"epoch", &mut epoch, true)?;
                let read = |name| {
                    let mut value: usize = 0;
                    control(mallctl, name, &mut value, false).map(|()| value as u64)
                };
                Some(Statistics { used: read(c"stats.allocated")?, resident: read(c"stats.resident")? })
            }
            Self::Tcmalloc(function) => {
                let read = |name: &CStr| {
                    let mut value = 0;
                    // SAFETY: tcmalloc's function of this type, which writes a number to where there is room for it.
                    (unsafe { function(name.as_ptr(), &raw mut value) } != 0).then_some(value as u64)
                };
                let used = read(c"generic.current_allocated_bytes")?;
                Some(Statistics { used, resident: read(c"generic.total_physical_bytes")? })
            }
            Self::Musl | Self::Unknown => None,
        }
    }
}

/// Reads, and with `write` also sets, a value of jemalloc's.
fn control<T>(mallctl: MallCtl, name: &CStr, value: &mut T, write: bool) -> Option<()> {
    let mut length = size_of::<T>();
    let value: *mut c_void = std::ptr::from_mut(value).cast();
    let (new, new_length) = if write { (value, length) } else { (null_mut(), 0) };
    // SAFETY: jemalloc's function of this type, which writes at most `length` bytes, and fails if the value is of
    // another size.
    (unsafe { mallctl(name.as_ptr(), value, &raw mut length, new, new_length) } == 0).then_some(())
}

fn jemalloc_version(mallctl: MallCtl) -> Option<String> {
    let mut version: *const c_char = std::ptr::null();
    control(mallctl, c"version", &mut version, false)?;
    if version.is_null() {
        return None;
    }
    // SAFETY: jemalloc's version is a C string that lives as long as the library.
    let text = unsafe { CStr::from_ptr(version) }.to_string_lossy();
    // Such as 5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c.
    text.split('-').next().map(str::to_owned)
}

fn glibc_version() -> Option<String> {
    let function = lookup(c"gnu_get_libc_version")?;
    // SAFETY: `const char *gnu_get_libc_version(void)`, which returns a constant string.
    let text = unsafe {
        let function = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(function);
        CStr::from_ptr(function())
    };
    Some(text.to_string_lossy().into_owned())
}

/// Where the library begins that a function is in.
fn library(function: Option<*mut c_void>) -> Option<usize> {
    // SAFETY: a C struct in which zero means that there is nothing.
    let mut found: libc::Dl_info = unsafe { zeroed() };
    // SAFETY: this only searches.
    (unsafe { libc::dladdr(function?, &raw mut found) } != 0).then_some(found.dli_fbase as usize)
}
