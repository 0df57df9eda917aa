//! The live samples that a question is about.

use super::Question;
use super::site::site;
use crate::collector::State;
use crate::vm::heap::is_fields;
use crate::vm::memsize;
use memprofiler_core::graph::{Graph, Sample, SiteName};
use memprofiler_core::hash::Map;
use memprofiler_core::stack_tree::StackId;
use rb_sys::VALUE;

/// Samples by site.
#[derive(Debug, Default)]
pub struct Sampled {
    pub samples: Vec<Sample>,
    pub sites: Vec<SiteName>,
    /// How many samples are left out because their stacks are not known by name yet.
    pub unnamed: u64,
}

/// What is known of a stack.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// The index of its function among those that allocate on lines.
    At(usize),
    /// Nobody asks for it.
    Elsewhere,
    Unnamed,
}

impl Sampled {
    /// What `state` has of it. Its samples are not measured yet.
    pub fn of(state: &State, question: &Question) -> Self {
        let mut sampled = Self::default();
        let mut stacks: Map<StackId, Known> = Map::default();
        let mut lines = Lines::default();
        let sites = &state.sites;
        for sample in state.reservoir.live().samples() {
            let wanted = question.class.as_deref();
            let class = sites.classes.name(sample.class);
            if wanted.is_some_and(|wanted| class.is_none_or(|name| &**name != wanted)) {
                continue;
            }
            let known = *stacks.entry(sample.stack).or_insert_with(|| match site(&sites.stacks, sample.stack) {
                None => Known::Unnamed,
                Some(site) if question.place.as_ref().is_some_and(|place| !place.contains(&site)) => Known::Elsewhere,
                Some(site) => Known::At(lines.function(site)),
            });
            match known {
                Known::Elsewhere => {}
                Known::Unnamed => sampled.unnamed += 1,
                Known::At(function) => {
                    let weight = state.reservoir.weight(sample);
                    let (address, window) = (sample.address, state.reservoir.window(sample));
                    sampled.samples.push(Sample {
                        address,
                        site: lines.add(function, weight),
                        class: class.cloned(),
                        weight,
                        bytes: 0,
                        window,
                    });
                }
            }
        }
        sampled.sites = lines.sites();
        sampled
    }

    /// Measures them: as the graph has done, or by their slots if nothing reaches them. Leaves out what the graph has
    /// counted as a part of another object.
    pub fn measure(&mut self, graph: &Graph) {
        self.samples.retain_mut(|sample| {
            if let Some(node) = graph.node(sample.address) {
                sample.bytes = graph.bytes(node);
                return true;
            }
            let object = sample.address as VALUE;
            // SAFETY: no mark phase has found the object dead, or the check just before this search would have dropped
            // all samples: so nothing has swept it or freed its page, and its slot has what the object had.
            let (slot, is_part) = unsafe { (memsize::slot_size(object), is_fields(object)) };
            sample.bytes = slot as u64;
            !is_part
        });
    }
}

/// Lines that allocate, and their functions. A line can be of several, as where a method is defined on one: the class's
/// body allocates the method, and the method its objects.
#[derive(Debug, Default)]
struct Lines {
    /// The numbers of lines, by name.
    lines: Map<String, u32>,
    /// The indices of functions, by line and name.
    indices: Map<(u32, Option<String>), usize>,
    functions: Vec<Function>,
}

/// A function on a line.
#[derive(Debug)]
struct Function {
    /// The number of its line.
    line: u32,
    site: SiteName,
    /// How many objects it has allocated.
    weight: f64,
}

impl Lines {
    /// The index of a function on its line.
    fn function(&mut self, site: SiteName) -> usize {
        let next = self.lines.len() as u32;
        let line = *self.lines.entry(site.name.clone()).or_insert(next);
        *self.indices.entry((line, site.function.clone())).or_insert_with(|| {
            self.functions.push(Function { line, site, weight: 0.0 });
            self.functions.len() - 1
        })
    }

    /// Adds an object of a function, and returns the number of its line.
    fn add(&mut self, function: usize, weight: f64) -> u32 {
        let function = &mut self.functions[function];
        function.weight += weight;
        function.line
    }

    /// The lines, each with the function that allocates most on it.
    fn sites(mut self) -> Vec<SiteName> {
        self.functions.sort_by(|one, other| (one.line.cmp(&other.line)).then(other.weight.total_cmp(&one.weight)));
        self.functions.dedup_by_key(|function| function.line);
        self.functions.into_iter().map(|function| function.site).collect()
    }
}
