//! The names of IDs.

use crate::layout::{self, Layout};
use crate::memory::Memory;
use crate::object::is_heap;
use crate::value::{self, Elements};

// symbol.c: an Array of Arrays of names and Symbols, by serial number.
const UNIT: usize = 512;
const ENTRY: usize = 2;
/// IDs of operators are lower, and their own serial numbers; others are greater than the number shifted.
const OPERATORS: usize = 1 << 10;
/// RUBY_SYMBOL_FLAG and RUBY_SPECIAL_SHIFT: a static Symbol is an ID, shifted, and this.
const SYMBOL: usize = 0xc;
const SYMBOL_SHIFT: usize = 8;
/// The second word of an object: its class, which one that is hidden from Ruby lacks.
const CLASS: usize = 8;

/// The VM's table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    ids: usize,
}

impl Symbols {
    /// The table, if `value` is the Array in it: one that nothing else looks like.
    pub fn new<M: Memory>(memory: &M, layout: &Layout, value: usize) -> Result<Option<Self>, M::Error> {
        if !is_heap(value as u64) || memory.word(value.wrapping_add(CLASS))? != 0 {
            return Ok(None);
        }
        let Some(units) = Elements::of(memory, layout, value)? else { return Ok(None) };
        if !(2..1 << 20).contains(&units.count) {
            return Ok(None);
        }
        let this = Self { ids: value };
        // The predefined names end somewhere in the first unit, and so all of the second are known by their numbers.
        for number in UNIT..UNIT + 4 {
            let Some((name, symbol)) = this.entry(memory, layout, number)? else { return Ok(None) };
            let known = symbol & 0xff == SYMBOL && symbol >> SYMBOL_SHIFT >> layout::ID_SCOPE_SHIFT == number;
            if !known || value::string(memory, layout, name)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(this))
    }

    /// The name of an ID; None if it has none.
    pub fn name<M: Memory>(&self, memory: &M, layout: &Layout, id: usize) -> Result<Option<String>, M::Error> {
        let number = if id < OPERATORS { id } else { id >> layout::ID_SCOPE_SHIFT };
        match self.entry(memory, layout, number)? {
            Some((name, _)) => value::string(memory, layout, name),
            None => Ok(None),
        }
    }

    /// The ID of this name among the first ones, which the VM itself makes.
    pub fn find<M: Memory>(&self, memory: &M, layout: &Layout, name: &str) -> Result<Option<usize>, M::Error> {
        for number in 1..8 * UNIT {
            let Some((string, symbol)) = self.entry(memory, layout, number)? else { continue };
            if symbol & 0xff == SYMBOL && value::string(memory, layout, string)?.as_deref() == Some(name) {
                return Ok(Some(symbol >> SYMBOL_SHIFT));
            }
        }
        Ok(None)
    }

    /// The name and the Symbol.
    fn entry<M: Memory>(&self, memory: &M, layout: &Layout, number: usize) -> Result<Option<(usize, usize)>, M::Error> {
        let Some(units) = Elements::of(memory, layout, self.ids)? else { return Ok(None) };
        let Some(unit) = units.get(memory, number / UNIT)? else { return Ok(None) };
        let Some(unit) = Elements::of(memory, layout, unit)? else { return Ok(None) };
        let at = number % UNIT * ENTRY;
        Ok(unit.get(memory, at)?.zip(unit.get(memory, at + 1)?))
    }
}
