//! Stacks as Ruby's own backtraces have them, the slow way. Making one allocates, which a hook must not: the stack is read
//! at the next safe point, where the innermost frames may already be others.

use super::Collector;
use super::hooked;
use super::keys::Function;
use super::mute::Mute;
use super::state::State;
use crate::vm::names::FunctionName;
use crate::vm::{labels, protect, ractor, safepoint, threads};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, RArray, RString, Value};
use memprofiler_core::hash::Map;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::stack_tree::StackId;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the job ran where it could do nothing, and has to be asked for again.
static MISSED: AtomicBool = AtomicBool::new(false);

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
        if self.awaited != Some(context as usize) || MISSED.swap(false, Ordering::Relaxed) {
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

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.read.capacity() * size_of::<(u32, StackId)>()
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
    if !ractor::is_main() {
        MISSED.store(true, Ordering::Relaxed);
        return;
    }
    let _mute = Mute::new(threads::current_context());
    hooked::each(|collector| {
        // A stack that cannot be read stays empty; there is nobody to tell.
        let _ = read_stack(collector);
    });
}

fn read_stack(collector: &Collector) -> Result<(), Error> {
    let context = threads::current_context();
    let Some(awaited) = collector.state.with(|state| state.capture.deferred.awaited.take()) else { return Ok(()) };
    if awaited != context as usize {
        return Ok(());
    }
    let frames = backtrace()?;
    let labels = collector.state.with(|state| state.options.labels);
    // SAFETY: the GVL is held, and the labels are copied at once.
    let labels = if labels { unsafe { labels::current() } } else { None };
    let labels = Arc::new(labels.map(|labels| LabelSet::clone(&labels)).unwrap_or_default());
    collector.state.with(|state| store(state, &frames, &labels));
    Ok(())
}

/// Function and line of each frame of the running thread, the innermost first.
fn backtrace() -> Result<Vec<(FunctionName, u32)>, Error> {
    // Not Thread#backtrace_locations: when a method returns the VM may raise what is due in this thread, and here
    // nothing can be raised, so that Thread#kill would be lost for good.
    // SAFETY: the GVL is held and no borrow is alive across the call.
    let entries = protect(|| unsafe { rb_sys::rb_make_backtrace() })?;
    // SAFETY: the function returns an Array.
    let entries = RArray::from_value(unsafe { Value::from_raw(entries) });
    Ok(entries.into_iter().flatten().filter_map(RString::from_value).map(|entry| parse(&text(entry))).collect())
}

fn text(string: RString) -> String {
    // SAFETY: nothing runs that could change the String before its bytes are copied.
    String::from_utf8_lossy(unsafe { string.as_slice() }).into_owned()
}

/// Takes "path:line:in `method'" apart, with any of Ruby's quotes. C functions may have no line, top-level code no name.
fn parse(entry: &str) -> (FunctionName, u32) {
    let at = entry.rfind(":in `").or_else(|| entry.rfind(":in '"));
    let (place, name) = match at {
        Some(at) => (&entry[..at], entry[at + ":in `".len()..].trim_end_matches('\'')),
        None => (entry, ""),
    };
    let split = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = split.unwrap_or((place, 0));
    (FunctionName { name: name.into(), file: file.into(), start_line: 0 }, line)
}

fn store(state: &mut State, frames: &[(FunctionName, u32)], labels: &Arc<LabelSet>) {
    let mut leaf =
        if labels.pairs().is_empty() { StackId::EMPTY } else { state.capture.labelled(StackId::EMPTY, labels) };
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
