//! The numbers by which a profile that is written without the GVL refers to what is in the state: they follow from
//! those that things have there, so that no table is needed.

use crate::collector::sample_types::SampleTypeNames;
use crate::collector::stacks::FrameKind;
use crate::collector::state::State;
use crate::vm::bare_names;
use crate::vm::position::Position;
use memprofiler_core::labels::LabelSet;
use memprofiler_core::pprof::windows_key;
use memprofiler_core::stack_tree::{Node, StackId};
use rb_sys::VALUE;

/// How many strings each label set has.
pub const STRINGS_OF_LABELS: i64 = 2 * LabelSet::MAX_PAIRS as i64;

/// The strings that are always there.
pub mod text {
    /// Names and units of the four columns.
    pub const COLUMNS: [[i64; 2]; 4] = [[1, 2], [3, 4], [5, 6], [7, 8]];
    /// The name and the unit of the period.
    pub const PERIOD: [i64; 2] = [9, 10];
    /// A label's key.
    pub const CLASS: i64 = 11;
    /// The name of the mapping.
    pub const RUBY: i64 = 12;
    /// The name of what has no code.
    pub const NATIVE: i64 = 13;
    /// The name of what only Ruby could name.
    pub const UNNAMED: i64 = 14;
    /// The key of the label with the windows of what is alive.
    pub const WINDOWS: i64 = 15;
    /// The number of the first string that is not one of these.
    pub const END: i64 = 16;
}

/// Those strings.
pub fn fixed(names: SampleTypeNames) -> Vec<String> {
    let columns = names.types();
    let windows = windows_key(&columns[2].name);
    let types = columns.into_iter().chain([names.period_type()]);
    let types = types.flat_map(|each| [each.name.to_string(), each.unit.to_string()]);
    let others = ["class", "ruby", "(C function)", "(not yet named)"].map(str::to_owned);
    [String::new()].into_iter().chain(types).chain(others).chain([windows]).collect()
}

/// Where a frame is.
#[derive(Debug, Clone, Copy)]
pub struct SourceLine {
    /// The function's number.
    pub function: u64,
    /// The numbers of its name and file, if the function stands for this frame only.
    pub own: Option<[i64; 2]>,
    /// The line.
    pub line: u32,
}

/// The numbers of one state.
pub struct Numbering<'a> {
    state: &'a State,
    /// Whether objects can be read: no collection is moving them.
    pub readable: bool,
    /// The numbers of the first strings of each kind, or of the only one.
    pub named: i64,
    pub coded: i64,
    pub classes: i64,
    pub labels: i64,
    /// How many of each kind there are.
    pub named_count: usize,
    pub coded_count: usize,
    pub class_count: usize,
    pub label_sets: usize,
}

impl<'a> Numbering<'a> {
    /// `first` is the number of the first string.
    pub fn new(state: &'a State, readable: bool, first: usize) -> Self {
        let stacks = &state.sites.stacks;
        let (named_count, label_sets) = stacks.name_bounds();
        let coded_count = stacks.tree().function_bound();
        let class_count = state.sites.classes.id_bound();
        let named = first as i64;
        let coded = named + 2 * named_count as i64;
        let classes = coded + 2 * coded_count as i64;
        let labels = classes + class_count as i64;
        Self { state, readable, named, coded, classes, labels, named_count, coded_count, class_count, label_sets }
    }

    /// The number of the location of a stack's innermost frame, if that is one.
    pub fn location(&self, stack: StackId, node: Node) -> Option<u64> {
        let kind = self.state.sites.stacks.frame_kind(node);
        matches!(kind, FrameKind::Named(_) | FrameKind::Walked { .. } | FrameKind::Profiled(_))
            .then(|| stack.index().map(|index| index as u64 + 1))?
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = (StackId, Node)> {
        let stacks = &self.state.sites.stacks;
        let first = stacks.node(stack).map(|node| (stack, node));
        std::iter::successors(first, |(_, node)| Some((node.parent, stacks.node(node.parent)?)))
    }

    /// The numbers of a named function's name and file.
    pub fn name(&self, id: u32) -> [i64; 2] {
        [0, 1].map(|part| self.named + 2 * i64::from(id) + part)
    }

    /// The numbers of the name and file of a function known by its code.
    pub fn code(&self, number: u32) -> [i64; 2] {
        [0, 1].map(|part| self.coded + 2 * i64::from(number) + part)
    }

    /// Where the innermost frame of a stack is.
    ///
    /// # Safety
    /// The state must be borrowed, and refer to objects that are alive.
    pub unsafe fn place(&self, stack: StackId, node: Node) -> SourceLine {
        // SAFETY: as required above.
        if let Some((function, _, line)) = unsafe { self.own_place(node) } {
            return SourceLine { function, own: None, line };
        }
        // SAFETY: as required above; a node keeps its parent alive.
        let caller = self.frames(node.parent).find_map(|(_, caller)| unsafe { self.own_place(caller) });
        let (_, file, line) = caller.unwrap_or((0, 0, 0));
        let name = match self.state.sites.stacks.frame_kind(node) {
            FrameKind::Walked { .. } => text::NATIVE,
            _ => text::UNNAMED,
        };
        let function = 1 + self.named_count as u64 + self.coded_count as u64 + stack.index().unwrap_or(0) as u64;
        SourceLine { function, own: Some([name, file]), line }
    }

    /// Whether it is known that `iseq` is the VM's own code.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    unsafe fn is_internal(&self, iseq: VALUE) -> bool {
        // SAFETY: the state keeps the instruction sequence alive, and no collection moves the name of its file.
        self.readable && unsafe { bare_names::is_internal(iseq) }
    }

    /// The numbers of a frame's function and file, and its line; None for what is shown at its caller's.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    unsafe fn own_place(&self, node: Node) -> Option<(u64, i64, u32)> {
        match self.state.sites.stacks.frame_kind(node) {
            FrameKind::Named(id) => Some((1 + u64::from(id), self.name(id)[1], node.position)),
            // SAFETY: as required above.
            FrameKind::Walked { iseq, .. } if iseq != 0 && !unsafe { self.is_internal(iseq) } => {
                let number = node.function.0;
                let position = self.readable.then(|| Position::from_raw(node.position));
                // SAFETY: the state keeps the instruction sequence alive, and has checked the position; it can be read.
                let line = position.map_or(0, |position| unsafe { position.line_at_once(iseq) });
                Some((1 + self.named_count as u64 + u64::from(number), self.code(number)[1], line))
            }
            _ => None,
        }
    }
}
