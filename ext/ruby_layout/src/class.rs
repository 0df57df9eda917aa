//! The names of classes and modules.

use crate::label::is_constant_path;
use crate::layout;
use crate::memory::Memory;
use crate::object::{Type, is_heap, type_of};
use crate::reader::Reader;
use crate::value;

/// More instance variables than a class has.
const MOST_VARIABLES: usize = 1 << 16;
/// Hash, key and value.
const ST_ENTRY: usize = 24;

impl<M: Memory> Reader<M> {
    /// The path by which a class or module is found as a constant, such as `Net::HTTP`; None for an anonymous one.
    pub(crate) fn class_path(&self, class: usize) -> Result<Option<String>, M::Error> {
        if !self.is_class(class)? {
            return Ok(None);
        }
        let path = match self.layout.classext_classpath {
            0 => self.variable(class, self.classpath)?,
            offset => self.memory.word(self.extension(class)?.wrapping_add(offset))?,
        };
        Ok(value::string(&self.memory, self.layout, path)?.filter(|path| is_constant_path(path)))
    }

    /// The only instance of a singleton class, or 0.
    pub(crate) fn attached(&self, class: usize) -> Result<usize, M::Error> {
        match self.layout.classext_attached {
            0 => self.variable(class, self.attached),
            offset => self.memory.word(self.extension(class)?.wrapping_add(offset)),
        }
    }

    /// As `FL_TEST(class, FL_SINGLETON)`, and from 3.4 on `RCLASS_SINGLETON_P`.
    pub(crate) fn is_singleton(&self, class: usize) -> Result<bool, M::Error> {
        if !is_heap(class as u64) {
            return Ok(false);
        }
        let flags = self.memory.word(class)?;
        let shared_flag = self.layout.fl_singleton == layout::OLDEST.fl_singleton;
        let kind = Type::of_flags(flags as u64);
        Ok(flags & self.layout.fl_singleton != 0 && (shared_flag || kind == Type::CLASS))
    }

    pub(crate) fn is_class(&self, value: usize) -> Result<bool, M::Error> {
        Ok(matches!(type_of(&self.memory, value)?, Some(Type::CLASS | Type::MODULE)))
    }

    fn extension(&self, class: usize) -> Result<usize, M::Error> {
        let at = class.wrapping_add(self.layout.class_ext);
        if self.layout.classext_iv_tbl == 0 { Ok(at) } else { self.memory.word(at) }
    }

    /// Up to Ruby 3.2: the value of an instance variable of a class, or 0.
    fn variable(&self, class: usize, id: Option<usize>) -> Result<usize, M::Error> {
        let Some(id) = id else { return Ok(0) };
        let memory = &self.memory;
        let extension = self.extension(class)?;
        if extension == 0 {
            return Ok(0);
        }
        if self.layout.classext_iv_tbl == 0 {
            return self.shaped_variable(class, extension, id);
        }
        let table = memory.word(extension.wrapping_add(self.layout.classext_iv_tbl))?;
        if table == 0 {
            return Ok(0);
        }
        let [start, bound, entries] = [layout::ST_ENTRIES_START, layout::ST_ENTRIES_BOUND, layout::ST_ENTRIES]
            .map(|offset| memory.word(table.wrapping_add(offset)));
        let (start, bound, entries) = (start?, bound?, entries?);
        if bound.wrapping_sub(start) > MOST_VARIABLES {
            memory.reject()?;
            return Ok(0);
        }
        for number in start..bound {
            let entry = entries.wrapping_add(number.wrapping_mul(ST_ENTRY));
            // A deleted one has the hash ~0.
            if memory.word(entry.wrapping_add(8))? == id && memory.word(entry)? != usize::MAX {
                return memory.word(entry.wrapping_add(16));
            }
        }
        Ok(0)
    }
}
