//! The live samples that a question is about.

use super::Question;
use super::site::site;
use crate::collector::State;
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
    /// The number of its site.
    Site(u32),
    /// Nobody asks for it.
    Elsewhere,
    Unnamed,
}

impl Sampled {
    /// What `state` has of it. Its samples are not measured yet.
    pub fn of(state: &State, question: &Question) -> Self {
        let mut sampled = Self::default();
        let mut stacks: Map<StackId, Known> = Map::default();
        let mut numbers: Map<String, u32> = Map::default();
        let sites = &state.sites;
        for sample in state.reservoir.live().samples() {
            let wanted = question.class.as_deref();
            if wanted.is_some_and(|wanted| sites.classes.name(sample.class).is_none_or(|name| &**name != wanted)) {
                continue;
            }
            let known = *stacks.entry(sample.stack).or_insert_with(|| match site(&sites.stacks, sample.stack) {
                None => Known::Unnamed,
                Some(site) if question.place.as_ref().is_some_and(|place| !place.contains(&site)) => Known::Elsewhere,
                Some(site) => Known::Site(*numbers.entry(site.name.clone()).or_insert_with(|| {
                    sampled.sites.push(site);
                    sampled.sites.len() as u32 - 1
                })),
            });
            match known {
                Known::Elsewhere => {}
                Known::Unnamed => sampled.unnamed += 1,
                Known::Site(site) => sampled.samples.push(Sample {
                    address: sample.address,
                    site,
                    weight: state.reservoir.weight(sample),
                    bytes: 0,
                    window: state.reservoir.window(sample),
                }),
            }
        }
        sampled
    }

    /// Measures them: as the graph has done, or by their slots if nothing reaches them.
    pub fn measure(&mut self, graph: &Graph) {
        for sample in &mut self.samples {
            sample.bytes = graph
                .node(sample.address)
                .map_or_else(|| memsize::slot_size(sample.address as VALUE) as u64, |node| graph.bytes(node));
        }
    }
}
