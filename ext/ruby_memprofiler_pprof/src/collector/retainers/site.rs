//! Where objects were allocated, as reports say it.

use crate::collector::stacks::{FrameKind, Stacks};
use crate::vm::names::FunctionName;
use memprofiler_core::analysis::gem;
use memprofiler_core::graph::SiteName;
use memprofiler_core::stack_tree::StackId;

/// A place in the source, as a user names it: `FILE:LINE` or `FILE`, where the path can begin at any of its
/// directories.
#[derive(Debug, Clone)]
pub struct Place(String);

impl Place {
    /// From what a user has written.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Whether this is the site's line, or its file.
    pub fn contains(&self, site: &SiteName) -> bool {
        [Some(site.name.as_str()), site.file.as_deref()].into_iter().flatten().any(|name| {
            name.strip_suffix(self.0.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }
}

/// The innermost line of the program in `stack`, or the innermost line at all if it is all libraries': what reports by
/// line show. None if the stack is not known by name yet.
pub fn site(stacks: &Stacks, stack: StackId) -> Option<SiteName> {
    let mut innermost: Option<Frame> = None;
    let mut at = stack;
    while let Some(node) = stacks.node(at) {
        match stacks.frame_kind(node) {
            FrameKind::Named(id) => {
                let frame = Frame { function: stacks.function_name(id)?, line: node.position };
                let frame = if frame.reports_caller() { frame.within(stacks, node.parent) } else { frame };
                if gem::of(&frame.function.file) == "app" {
                    return Some(frame.site());
                }
                innermost = innermost.or(Some(frame));
            }
            FrameKind::Labels(_) | FrameKind::Span(_) => {}
            _ => return None,
        }
        at = node.parent;
    }
    Some(innermost.map_or_else(|| SiteName { name: "(unknown)".to_owned(), ..SiteName::default() }, Frame::site))
}

#[derive(Debug, Clone, Copy)]
struct Frame<'a> {
    function: &'a FunctionName,
    line: u32,
}

impl<'a> Frame<'a> {
    /// Whether it is of a C function, which has its caller's file and line.
    fn reports_caller(self) -> bool {
        self.function.start_line == 0 && !self.function.name.starts_with('<')
    }

    /// The caller's frame, if the caller is known by name and on the same line.
    fn within(self, stacks: &'a Stacks, caller: StackId) -> Self {
        let Some(node) = stacks.node(caller) else { return self };
        let FrameKind::Named(id) = stacks.frame_kind(node) else { return self };
        match stacks.function_name(id) {
            Some(function) if function.file == self.function.file && node.position == self.line => {
                let frame = Self { function, ..self };
                if frame.reports_caller() { frame.within(stacks, node.parent) } else { frame }
            }
            _ => self,
        }
    }

    fn site(self) -> SiteName {
        let Self { function: FunctionName { name, file, .. }, line } = self;
        let function = Some(name.to_string());
        if file.is_empty() {
            return SiteName { name: name.to_string(), function, ..SiteName::default() };
        }
        SiteName { name: format!("{file}:{line}"), file: Some(file.to_string()), line: Some(line.into()), function }
    }
}
