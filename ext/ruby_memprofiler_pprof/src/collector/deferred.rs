//! Stacks by `Thread#backtrace_locations`, the slow way. It runs Ruby code, which a hook must not: the stack is read at
//! the next safe point, where the innermost frames may already be others.

use super::Collector;
use super::hooked;
use super::keys::Function;
use super::mute::Mute;
use super::state::State;
use crate::vm::names::FunctionName;
use crate::vm::{safepoint, threads};
use magnus::{Error, Module, RArray, RClass, Ruby, TryConvert, Value, prelude::*};
use memprofiler_core::hash::Map;
use memprofiler_core::stack_tree::StackId;
use std::ffi::c_void;
use std::sync::Arc;

/// The stacks that samples are still waiting for, and those that came.
#[derive(Debug, Default)]
pub struct Deferred {
    /// The number given out last.
    latest: u32,
    /// The context whose stack it stands for, until that was read.
    awaited: Option<usize>,
    /// The stacks read since the last flush; each holds a reference.
    read: Map<u32, StackId>,
}

impl Deferred {
    /// The number of the stack that `context` will have at its next safe point.
    pub fn number(&mut self, context: *const u8) -> u32 {
        if self.awaited != Some(context as usize) {
            self.awaited = Some(context as usize);
            self.latest = self.latest.wrapping_add(1);
            safepoint::request(read_stacks);
        }
        self.latest
    }

    /// The stack behind a number; the empty one if it could not be read.
    pub fn stack(&self, number: u32) -> StackId {
        self.read.get(&number).copied().unwrap_or(StackId::EMPTY)
    }

    /// The number given out last.
    pub fn latest(&self) -> u32 {
        self.latest
    }

    /// Forgets the stacks up to a number; the references are passed to `release`.
    pub fn forget_up_to(&mut self, number: u32, mut release: impl FnMut(StackId)) {
        self.read.retain(|&read, &mut stack| {
            let keep = read.wrapping_sub(number) as i32 > 0;
            if !keep {
                release(stack);
            }
            keep
        });
    }
}

unsafe extern "C" fn read_stacks(_: *mut c_void) {
    let Ok(ruby) = Ruby::get() else { return };
    let _mute = Mute::new(threads::current_context());
    hooked::each(|collector| {
        // A stack that cannot be read stays empty; there is nobody to tell.
        let _ = read_stack(&ruby, collector);
    });
}

fn read_stack(ruby: &Ruby, collector: &Collector) -> Result<(), Error> {
    let context = threads::current_context();
    let Some(awaited) = collector.state.with(|state| state.capture.deferred.awaited.take()) else { return Ok(()) };
    if awaited != context as usize {
        return Ok(());
    }
    let frames = backtrace(ruby)?;
    collector.state.with(|state| store(state, &frames));
    Ok(())
}

/// Function and line of each frame of the running thread, the innermost first.
fn backtrace(ruby: &Ruby) -> Result<Vec<(FunctionName, u32)>, Error> {
    let thread: Value = ruby.class_object().const_get::<_, RClass>("Thread")?.funcall("current", ())?;
    let locations: RArray = thread.funcall("backtrace_locations", (1,))?;
    locations
        .into_iter()
        .map(|location| {
            let path: Option<String> = location.funcall("absolute_path", ())?;
            let path = path.map_or_else(|| location.funcall("path", ()).and_then(String::try_convert), Ok)?;
            let name: String = location.funcall("label", ())?;
            let line = location.funcall::<_, _, Option<u32>>("lineno", ())?.unwrap_or(0);
            Ok((FunctionName { name: name.into(), file: path.into(), start_line: 0 }, line))
        })
        .collect()
}

fn store(state: &mut State, frames: &[(FunctionName, u32)]) {
    let mut leaf = StackId::EMPTY;
    for (function, line) in frames.iter().take(state.options.max_frames).rev() {
        let id = state.function_names.id(Arc::new(function.clone()));
        let (stack, _) = state.capture.stacks.extend(leaf, Function::Named(id).key(), *line);
        state.capture.stacks.release(leaf);
        leaf = stack;
    }
    let number = state.capture.deferred.latest;
    if let Some(replaced) = state.capture.deferred.read.insert(number, leaf) {
        state.capture.stacks.release(replaced);
    }
}
