//! Compares what is read from the VM's memory with what Ruby says, before it is relied on.

use super::super::frames::LAYOUT;
use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::object::read;
use super::locals::{Locals, frames};
use super::references::each_child;
use super::types::{DataType, DataTypes, data};
use super::{sets, tables, text};
use crate::faults;
use crate::vm::threads;
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, Value};
use rb_sys::VALUE;
use std::sync::OnceLock;

/// One thing of each kind that is read. It can see the variables of the code that is running: its own are declared, and
/// parentheses make clear what is a call.
const EXERCISE: &str = r"
->(;held, holder, captured, block, fiber) {
  held = Array.new(5) { Object.new }
  holder = Module.new do
    const_set(:Held, held[0])
    private_constant(:Held)
  end
  captured = held[1]
  block = -> { captured }
  fiber = Fiber.new do |suspended|
    Thread.current[:held] = held[3]
    Fiber.yield(nil)
    suspended
  end
  fiber.resume(held[2])
  [held, holder, *holder.const_source_location(:Held), block, binding(), held.method(:push), fiber, Hash.new(held[4])]
}.call
";

/// What can be relied on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checked {
    /// The VM's types of T_DATA.
    pub types: DataTypes,
    /// Tables of constants.
    pub constants: bool,
    /// The variables that blocks have captured.
    pub captured: bool,
    /// The distance from a fiber to its execution context in bytes.
    pub context: Option<usize>,
    /// The variables of frames.
    pub frames: bool,
    /// The variables of fibers.
    pub fiber_locals: bool,
    /// The default values of Hashes.
    pub defaults: bool,
}

/// Checks everything at the first call.
pub fn run(ruby: &Ruby) -> Result<Checked, Error> {
    static CHECKED: OnceLock<Checked> = OnceLock::new();
    match CHECKED.get() {
        Some(&checked) => Ok(checked),
        None => check(ruby).map(|checked| *CHECKED.get_or_init(|| checked)),
    }
}

fn check(ruby: &Ruby) -> Result<Checked, Error> {
    let things: RArray = ruby.eval(EXERCISE)?;
    let thing = |index| things.entry::<Value>(index).map(|thing| thing.as_raw());
    let held: RArray = things.entry(0)?;
    let held = |index| held.entry::<Value>(index).map(|object| object.as_raw());
    let place = (things.entry(2)?, things.entry(3)?);
    let fiber = thing(7)?;
    let set = sets::data_type()?;
    // SAFETY: the GVL is held, and all of these are alive, since the array is on this stack.
    let checked = unsafe {
        let types = DataTypes {
            thread: DataType::of(threads::current()),
            block: DataType::of(thing(4)?),
            binding: DataType::of(thing(5)?),
            method: DataType::of(thing(6)?),
            fiber: DataType::of(fiber),
            set,
        };
        let context = context_of(fiber);
        let at = context.map(|distance| data(fiber).add(distance));
        Checked {
            types,
            constants: allowed("constants") && has_constant(thing(1)?, held(0)?, &place),
            captured: allowed("captured") && has_captured(thing(4)?, held(1)?),
            context,
            frames: allowed("frames") && at.map(|at| has_local(at, held(2))).transpose()?.unwrap_or(false),
            fiber_locals: allowed("fiber_locals")
                && at.map(|at| has_fiber_local(at, held(3))).transpose()?.unwrap_or(false),
            defaults: allowed("defaults") && has_default(thing(8)?, held(4)?),
        }
    };
    things.entry::<Value>(7)?.funcall::<_, _, Value>("resume", ())?;
    Ok(checked)
}

/// Whether a spec has not denied it.
fn allowed(what: &str) -> bool {
    LAYOUT.is_some() && !faults::denied(&format!("heap {what}"))
}

/// # Safety
/// The GVL must be held, and `module` be a live module.
unsafe fn has_constant(module: VALUE, value: VALUE, (file, line): &(String, i64)) -> bool {
    // SAFETY: the module is alive, and its constants do not change meanwhile.
    unsafe {
        let found: Vec<tables::Constant> = tables::constants(module).collect();
        let [constant] = found[..] else { return false };
        constant.value == value
            && constant.name().as_deref() == Some("Held")
            && constant.place() == Some((file.clone(), *line))
    }
}

/// # Safety
/// The GVL must be held, and `block` be a live Proc.
unsafe fn has_captured(block: VALUE, value: VALUE) -> bool {
    let mut found = false;
    // SAFETY: the Proc is alive, and its environment with it.
    unsafe {
        each_child(block, |child| {
            if imemo_type(child) == Some(layout::IMEMO_ENV) {
                found |= has(Locals::of_environment(child).0, "captured", value);
            }
        });
    }
    found
}

/// # Safety
/// The GVL must be held, and the variables be there.
unsafe fn has(locals: Locals, name: &str, value: VALUE) -> bool {
    // SAFETY: as required of the caller.
    unsafe { locals.values().any(|(index, each)| each == value && locals.name(index).as_deref() == Some(name)) }
}

/// The distance from a fiber to its execution context, which is a part of it. It is the same for all.
///
/// # Safety
/// The GVL must be held, and `fiber` be a live Fiber.
unsafe fn context_of(fiber: VALUE) -> Option<usize> {
    let running = threads::current_context();
    if running.is_null() {
        return None;
    }
    // SAFETY: an execution context has the address of its fiber at the layout's offset; and what is so close behind the
    // beginning of a fiber can be read.
    unsafe {
        let distance = (running as usize).checked_sub(read(running, layout::EC_FIBER)).filter(|&bytes| bytes < 4096)?;
        (read(data(fiber).add(distance), layout::EC_FIBER) == data(fiber) as usize).then_some(distance)
    }
}

/// # Safety
/// The GVL must be held, and `context` be that of the fiber above.
unsafe fn has_local(context: *const u8, value: Result<VALUE, Error>) -> Result<bool, Error> {
    let value = value?;
    // SAFETY: the fiber is suspended.
    Ok(unsafe { frames(context).any(|frame| has(frame.locals, "suspended", value)) })
}

/// # Safety
/// As for [`has_local`].
unsafe fn has_fiber_local(context: *const u8, value: Result<VALUE, Error>) -> Result<bool, Error> {
    let value = value?;
    // SAFETY: the fiber is suspended.
    let found: Vec<(u32, VALUE)> = unsafe { tables::fiber_locals(context).collect() };
    let [(serial, held)] = found[..] else { return Ok(false) };
    // SAFETY: the GVL is held.
    Ok(held == value && unsafe { text::id_of_serial(serial) }.as_deref() == Some("held"))
}

/// # Safety
/// The GVL must be held, and `hash` be a live Hash.
unsafe fn has_default(hash: VALUE, value: VALUE) -> bool {
    // SAFETY: a Hash has this word at the layout's offset.
    LAYOUT.is_some_and(|layout| unsafe { read(hash as *const u8, layout.hash_ifnone) } as VALUE == value)
}
