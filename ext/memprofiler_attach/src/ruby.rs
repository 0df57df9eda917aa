//! A Ruby in another process.

use crate::elf::Image;
use crate::failure::Failure;
use crate::process::{self, Mapping};
use ruby_layout::memory::{Memory, ProcessMemory};

/// The profiler's library.
const PROFILER: &str = "ruby_memprofiler_pprof.so";
/// `ruby_version` is this long at most, with its zero.
const VERSION_SIZE: usize = 16;

/// What is known of it.
#[derive(Debug)]
pub struct Ruby {
    /// As in `3.4.1`.
    pub version: String,
    /// The library or program that has the VM.
    pub image: Image,
    /// Whether the profiler's library is loaded.
    pub has_profiler: bool,
}

impl Ruby {
    /// The one in process `pid`; None if there is none.
    pub fn in_process(pid: i32) -> Result<Option<Self>, Failure> {
        let mappings = process::mappings(pid).map_err(|error| process::explain(pid, &error))?;
        let memory = ProcessMemory::new(pid);
        if let Some(first) = mappings.iter().find(|mapping| mapping.is_readable()) {
            memory.word(first.start).map_err(|error| process::explain(pid, &error))?;
        }
        Ok(Self::find(&memory, &mappings))
    }

    /// The one in a memory in which this is mapped.
    pub fn find<M: Memory>(memory: &M, mappings: &[Mapping]) -> Option<Self> {
        let images = mappings.iter().filter_map(|mapping| Image::at(memory, mapping));
        let (image, address) = images
            .filter(|image| image.symbol(memory, "ruby_init_stack").is_some())
            .find_map(|image| image.symbol(memory, "ruby_version").map(|symbol| (image, symbol.address)))?;
        let version = version(&memory.bytes(address, VERSION_SIZE).ok()?)?;
        let has_profiler = mappings.iter().any(|mapping| mapping.path.contains(PROFILER));
        Some(Self { version, image, has_profiler })
    }
}

/// The text that ends with a zero; None if that can be no version.
fn version(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|&byte| byte == 0).next().and_then(|text| std::str::from_utf8(text).ok())?;
    text.chars().all(|letter| letter.is_ascii_graphic()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_text_for_a_version() {
        assert_eq!(version(b"3.4.1\0\x1b[2J").as_deref(), Some("3.4.1"));
        assert_eq!(version(b"3.4\x1b[2J\0"), None);
    }
}
