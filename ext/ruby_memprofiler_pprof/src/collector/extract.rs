//! What a profile is built from, copied out of the collector so that the rest can be done without the GVL.

use super::index_map::IndexMap;
use super::keys::{Class, Function};
use super::state::State;
use crate::vm::names::FunctionName;
use memprofiler_core::encode::{Header, encode};
use memprofiler_core::live_set::ClassId;
use memprofiler_core::profile::{self, Profile, SampleKey, Values};
use memprofiler_core::stack_tree::StackId;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// flate2's fastest level, as Go's runtime uses for its heap profiles.
const GZIP_LEVEL: u32 = 1;

/// What tells the values of one flush apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub stack: StackId,
    pub class: ClassId,
    pub age: Option<u32>,
}

/// Samples and the frames of their stacks, by name.
#[derive(Debug, Default)]
pub struct Extract {
    samples: Vec<Sample>,
    /// Callers come before those they call.
    frames: Vec<Frame>,
    /// Where each stack of the collector is in `frames`, by its index.
    known: IndexMap<u32>,
}

#[derive(Debug)]
struct Sample {
    stack: Option<u32>,
    class: Option<Arc<str>>,
    age: Option<u32>,
    values: Values,
}

#[derive(Debug)]
struct Frame {
    caller: Option<u32>,
    function: Arc<FunctionName>,
    line: u32,
}

impl Extract {
    /// Copies one sample, whose stack and class are known by name.
    pub fn add(&mut self, state: &State, key: Key, values: Values) {
        let stack = self.frame(state, key.stack);
        let class = match Class::of(state.classes.key(key.class.0)) {
            Class::Named(id) => state.class_names.get(id).cloned(),
            _ => None,
        };
        self.samples.push(Sample { stack, class, age: key.age, values });
    }

    /// The number of the innermost frame of `stack`.
    fn frame(&mut self, state: &State, stack: StackId) -> Option<u32> {
        let mut missing = Vec::new();
        let mut at = stack;
        while self.known.get(at).is_none() {
            let Some(node) = state.capture.stacks.node(at) else { break };
            missing.push((at, node));
            at = node.parent;
        }
        let mut caller = self.known.get(at);
        for (stack, node) in missing.into_iter().rev() {
            let Function::Named(id) = Function::of(state.capture.stacks.function_key(node.function)) else { continue };
            let Some(function) = state.function_names.get(id).cloned() else { continue };
            let number = self.frames.len() as u32;
            self.frames.push(Frame { caller, function, line: node.position });
            self.known.insert(stack, number);
            caller = Some(number);
        }
        caller
    }

    /// The encoded profile, how long it took to build it, and to encode it.
    pub fn encode(self, header: &Header) -> (io::Result<Vec<u8>>, Duration, Duration) {
        let start = Instant::now();
        let mut profile = Profile::new();
        let mut stacks: Vec<profile::Stack> = Vec::with_capacity(self.frames.len());
        for Frame { caller, function, line } in &self.frames {
            let name = profile.string(&function.name);
            let file = profile.string(&function.file);
            let location = profile.location(profile::Function { name, file, start_line: function.start_line }, *line);
            let caller = caller.and_then(|caller| stacks[caller as usize]);
            stacks.push(profile.extend(caller, location));
        }
        for Sample { stack, class, age, values } in self.samples {
            let stack = stack.and_then(|stack| stacks[stack as usize]);
            let class = class.map(|class| profile.string(&class));
            profile.add(SampleKey { stack, class, age }, values);
        }
        let build = start.elapsed();
        let encoded = encode(&mut profile, header, GZIP_LEVEL);
        (encoded, build, start.elapsed() - build)
    }
}
