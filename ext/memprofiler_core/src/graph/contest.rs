//! Whether other references than those of a path lead to what it tells.

use super::found::Found;
use super::paths::Paths;
use super::{Kind, NodeId};

/// Where other references than those of a path lead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contest {
    /// To the last such node of the path.
    pub last: Option<NodeId>,
    /// Whether the object would stay alive without the chain, which may end before the path: they lead to a node of it,
    /// or past its end.
    pub elsewhere: bool,
}

impl Contest {
    /// Of the path to `object`, whose chain ends at `end`.
    ///
    /// All that refers to a node is dominated by the node's dominator. So if that is what refers to it on the path,
    /// nothing else does, but for what the node itself holds.
    pub fn of(found: Found<'_>, paths: &mut Paths<'_>, end: NodeId, object: NodeId) -> Self {
        let mut contest = Self { last: None, elsewhere: !found.dominators.dominates(end, object) };
        let (end, mut in_chain) = (paths.place(end), false);
        let mut next = Some(paths.place(object));
        while let Some(node) = next {
            in_chain |= node == end;
            // That others refer to code explains nothing, and a thread that runs is always held by the VM.
            let is_code = found.graph.kind(node) == Kind::Code;
            let is_begin = is_code && in_chain || found.graph.kind(node) == Kind::Thread;
            let before = paths.before(node).filter(|_| !is_begin);
            if before.is_some_and(|(parent, _)| !is_code && found.dominators.dominator(node) != Some(parent)) {
                contest.last = contest.last.or(Some(node));
                contest.elsewhere |= in_chain;
            }
            next = before.map(|(_, place)| place);
        }
        contest
    }
}
