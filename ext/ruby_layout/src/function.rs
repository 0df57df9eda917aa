//! The names of functions, as in the newest Ruby's backtraces, qualified.

use crate::iseq;
use crate::label::{INTERNAL, block_prefix, blocks};
use crate::layout;
use crate::memory::Memory;
use crate::method::BlockMethod;
use crate::object::{Type, type_of};
use crate::reader::Reader;
use crate::value::{self, Elements};

/// Where backtraces show a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownAt {
    /// At its own file and line.
    Own,
    /// At the file and line of its caller: C functions, and Ruby code inside the VM.
    Caller,
    /// Instead of its caller: a rescue or ensure body, which is a frame on top of the method it belongs to.
    InPlaceOfCaller,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Such as `block in Foo#bar`.
    pub name: String,
    /// The absolute file name, or what replaces it in evaluated code.
    pub file: String,
    /// The line on which it begins; 0 if unknown.
    pub start_line: u32,
    /// Where it is shown.
    pub place: ShownAt,
}

impl<M: Memory> Reader<M> {
    /// Names the function that runs `iseq`, whose method entry is `entry` or 0.
    pub fn ruby_function(&self, iseq: usize, entry: usize) -> Result<Function, M::Error> {
        let memory = &self.memory;
        let body = iseq::body(memory, iseq)?;
        let (label, base) = self.labels(body)?;
        let file = self.file(memory.word(body.wrapping_add(layout::ISEQ_BODY_PATHOBJ))?)?;
        let first = memory.half(body.wrapping_add(layout::ISEQ_BODY_FIRST_LINENO))?;
        let depth = blocks(&label, &base);
        let name = match self.defined_method(entry)? {
            Some((method, body)) => block_prefix(depth.saturating_sub(body)) + &self.qualified(entry, method)?,
            None if entry != 0 => block_prefix(depth) + &self.qualified(entry, base)?,
            None => block_prefix(depth) + &base,
        };
        let place = if file.starts_with(INTERNAL) {
            ShownAt::Caller
        } else if iseq::is_handler(memory, iseq)? {
            ShownAt::InPlaceOfCaller
        } else {
            ShownAt::Own
        };
        let start_line = first >> self.layout.iseq_first_lineno_shift;
        Ok(Function { name, file, start_line, place })
    }

    /// Names the C function of a method entry.
    pub fn native_function(&self, entry: usize) -> Result<Function, M::Error> {
        let definition = self.memory.word(entry.wrapping_add(layout::ME_DEF))?;
        let id = self.memory.word(definition.wrapping_add(layout::METHOD_DEF_ORIGINAL_ID))?;
        let name = self.qualified(entry, self.id_name(id)?)?;
        Ok(Function { name, file: "<cfunc>".to_owned(), start_line: 0, place: ShownAt::Caller })
    }

    /// The label and the base label of code.
    fn labels(&self, body: usize) -> Result<(String, String), M::Error> {
        let text = |offset| {
            let value = self.memory.word(body.wrapping_add(offset))?;
            let text = value::string(&self.memory, self.layout, value)?;
            if text.is_none() {
                self.memory.reject()?;
            }
            Ok(text.unwrap_or_default())
        };
        Ok((text(layout::ISEQ_BODY_LABEL)?, text(layout::ISEQ_BODY_BASE_LABEL)?))
    }

    /// `pathobj_realpath`, or else `pathobj_path` of vm_core.h.
    fn file(&self, path: usize) -> Result<String, M::Error> {
        let (memory, layout) = (&self.memory, self.layout);
        if let Some(both) = Elements::of(memory, layout, path)? {
            for index in [1, 0] {
                let Some(path) = both.get(memory, index)? else { continue };
                if let Some(text) = value::string(memory, layout, path)? {
                    return Ok(text);
                }
            }
        }
        Ok(value::string(memory, layout, path)?.unwrap_or_default())
    }

    /// `Class#method` or `Class.method`; the bare method if the class has no name of its own.
    fn qualified(&self, entry: usize, method: String) -> Result<String, M::Error> {
        let defined = self.memory.word(entry.wrapping_add(layout::ME_DEFINED_CLASS))?;
        let (class, separator) = if self.is_singleton(defined)? {
            let object = if type_of(&self.memory, defined)? == Some(Type::ICLASS) {
                self.memory.word(defined.wrapping_add(layout::RBASIC_KLASS))?
            } else {
                self.attached(defined)?
            };
            (object, '.')
        } else {
            (self.memory.word(entry.wrapping_add(layout::ME_OWNER))?, '#')
        };
        Ok(match self.class_path(class)? {
            Some(path) => format!("{path}{separator}{method}"),
            None => method,
        })
    }

    /// The name under which define_method defined `entry`, and how many blocks its body is nested in; None for other
    /// methods.
    fn defined_method(&self, entry: usize) -> Result<Option<(String, u32)>, M::Error> {
        if entry == 0 {
            return Ok(None);
        }
        let Some(BlockMethod { id, iseq }) = BlockMethod::of(&self.memory, entry)? else { return Ok(None) };
        let depth = match iseq {
            Some(iseq) => {
                let (label, base) = self.labels(iseq::body(&self.memory, iseq)?)?;
                blocks(&label, &base)
            }
            None => 0,
        };
        Ok(Some((self.id_name(id)?, depth)))
    }
}
