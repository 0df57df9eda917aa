//! Where the VM keeps its global variables: the writable segments of the library, or of the program, that it is in.

use std::ops::Range;

/// Their addresses. Empty where that is not known.
#[cfg(target_os = "linux")]
pub(super) fn segments() -> Vec<Range<usize>> {
    use std::ffi::{c_int, c_void};

    struct Search {
        /// An address in the VM.
        inside: usize,
        found: Vec<Range<usize>>,
    }

    /// # Safety
    /// As `dl_iterate_phdr` calls it, with a `Search`.
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: what the linker passes is valid during the call, and so is the search, which nobody else uses.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the linker's own table, of that length.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let loaded = |header: &libc::Elf64_Phdr| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        };
        let segments = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        if !segments().any(|header| loaded(header).contains(&search.inside)) {
            return 0;
        }
        search.found.extend(segments().filter(|header| header.p_flags & libc::PF_W != 0).map(loaded));
        1
    }

    let mut search = Search { inside: rb_sys::rb_gc_count as *const () as usize, found: Vec::new() };
    // SAFETY: `look` gets the search that it expects.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// Their addresses. Empty where that is not known.
#[cfg(not(target_os = "linux"))]
pub(super) fn segments() -> Vec<Range<usize>> {
    Vec::new()
}
