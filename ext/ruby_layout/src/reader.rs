//! What the names of a Ruby are read with.

use crate::layout::{self, Layout, ReleaseLayout};
use crate::memory::Memory;
use crate::symbols::Symbols;

/// A Ruby of a known release.
#[derive(Debug)]
pub struct Reader<M> {
    /// Where it is.
    pub memory: M,
    /// That of its minor version.
    pub layout: &'static Layout,
    /// That of its release.
    pub release: &'static ReleaseLayout,
    /// The names of IDs, once they are found.
    pub symbols: Option<Symbols>,
    /// Up to Ruby 3.2: the ID of the instance variable of a class that has its name.
    pub(crate) classpath: Option<usize>,
    /// Up to Ruby 3.2: the ID of the instance variable of a singleton class that has its instance.
    pub(crate) attached: Option<usize>,
    /// Of Ruby 3.2: where the VM's shapes are.
    pub(crate) shapes: Option<usize>,
}

/// As in `3.4.1`: major, minor and patch version.
pub fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

impl<M: Memory> Reader<M> {
    /// A reader of a Ruby of this version; None if its layout is unknown.
    pub fn new(memory: M, (major, minor, patch): (u32, u32, u32)) -> Option<Self> {
        let layout = layout::for_version(major, minor)?;
        let release = layout::for_release(major, minor, patch)?;
        Some(Self { memory, layout, release, symbols: None, classpath: None, attached: None, shapes: None })
    }

    /// Takes `symbols` for the names of IDs, and the VM at `vm` for those of classes.
    pub fn set_names(&mut self, symbols: Symbols, vm: usize) -> Result<(), M::Error> {
        self.symbols = Some(symbols);
        self.shapes = self.shapes(vm)?;
        if self.layout.classext_classpath == 0 {
            self.classpath = symbols.find(&self.memory, self.layout, "__classpath__")?;
            self.attached = symbols.find(&self.memory, self.layout, "__attached__")?;
        }
        Ok(())
    }

    /// The name of an ID, or nothing if it has none.
    pub(crate) fn id_name(&self, id: usize) -> Result<String, M::Error> {
        let name = match self.symbols {
            Some(symbols) => symbols.name(&self.memory, self.layout, id)?,
            None => None,
        };
        Ok(name.unwrap_or_default())
    }
}
