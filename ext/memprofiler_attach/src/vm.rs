//! Finds the VM of a Ruby, and what its names are read with.

use crate::elf::Image;
use crate::failure::Failure;
use crate::ruby::Ruby;
use object::elf::EM_X86_64;
use ruby_layout::memory::{Memory, Paged};
use ruby_layout::reader::{Reader, parse_version};
use ruby_layout::symbols::Symbols;

const WORD: usize = size_of::<usize>();
/// More than the variables of a Ruby.
const MOST_DATA: usize = 64 << 20;

/// A Ruby whose stacks can be read.
#[derive(Debug)]
pub struct Vm<M> {
    /// As in `3.4.1`.
    pub version: String,
    /// What it is read with.
    pub reader: Reader<Paged<M>>,
    /// Where it is.
    pub address: usize,
}

impl<M: Memory> Vm<M> {
    /// The VM of `ruby`. Debian's 3.3 and newer do not export where it is. So the variables of the library are searched
    /// for what can only be a reference to a VM, and likewise for the table of names, which no Ruby exports.
    pub fn find(memory: M, ruby: Ruby) -> Result<Self, Failure> {
        let Ruby { version, image, .. } = ruby;
        // The sizes of locks differ elsewhere, and so do offsets behind them.
        if image.machine != EM_X86_64 {
            return Err(Failure::new("it is compiled for another machine than x86_64, the only one that is known"));
        }
        let mut reader = parse_version(&version)
            .and_then(|version| Reader::new(Paged::new(memory), version))
            .ok_or_else(|| Failure::new(format!("it is Ruby {version}, and only 3.1 to 4.0 are known")))?;
        let named = image.symbol(&reader.memory, "ruby_current_vm_ptr");
        let named = named.and_then(|symbol| reader.memory.word(symbol.address).ok());
        let mut address = named.filter(|&vm| reader.is_vm(vm).unwrap_or(false));
        let mut symbols = None;
        for (_, word) in variables(&reader.memory, &image) {
            if address.is_none() && reader.is_vm(word).unwrap_or(false) {
                address = Some(word);
            }
            if symbols.is_none() {
                symbols = Symbols::new(&reader.memory, reader.layout, word).ok().flatten();
            }
        }
        let (Some(address), Some(symbols)) = (address, symbols) else {
            let path = image.path;
            return Err(Failure::new(format!("no VM was found in {path}: it is still starting, or ending; try again")));
        };
        reader.set_names(symbols, address).map_err(|_| Failure::new("its names cannot be read; try again"))?;
        reader.memory.forget();
        Ok(Self { version, reader, address })
    }
}

/// The addresses of a library's variables, and the words in them, as far as they may be references.
pub fn variables<M: Memory>(memory: &M, image: &Image) -> Vec<(usize, usize)> {
    let segments = image.segments.iter().filter(|segment| segment.writable);
    let mut words = Vec::new();
    for segment in segments {
        let start = segment.start.wrapping_add(WORD - 1) & !(WORD - 1);
        let size = segment.end.saturating_sub(start).min(MOST_DATA);
        let Ok(bytes) = memory.bytes(start, size) else { continue };
        let all = bytes.chunks_exact(WORD).filter_map(|word| Some(usize::from_ne_bytes(word.try_into().ok()?)));
        let all = (start..).step_by(WORD).zip(all);
        words.extend(all.filter(|&(_, word)| word >= 0x1000 && word % WORD == 0 && word < 1 << 47));
    }
    words
}
