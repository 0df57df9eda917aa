//! Tells what holds objects.

use super::answer::{Holder, Largest, Link};
use super::found::Found;
use super::groups::{Group, signature};
use super::links::LinkId;
use super::trails::{Trails, gem_of_code};
use super::{Describe, NodeId};
use crate::hash::Map;

impl Group {
    /// The group as a part of an answer, for a site with so many bytes.
    pub fn holder<D: Describe>(
        &self,
        found: Found<'_>,
        trails: &mut Trails<'_, D>,
        bytes: f64,
        also: Vec<String>,
    ) -> Holder {
        let (chain, example) = (trails.chain(self.end), trails.chain(self.example));
        let example = example.strip_prefix(&*chain).unwrap_or_default();
        Holder {
            share: if bytes > 0.0 { self.bytes / bytes } else { 0.0 },
            samples: self.samples,
            objects: self.objects,
            bytes: self.bytes,
            exclusive: !self.contest.elsewhere,
            also,
            alike: self.alike,
            phrase: trails.phrase(&chain),
            folded: folded(found, trails, self.end, &chain),
            example: example.iter().map(|&id| link(found, trails, id)).collect(),
            chain: links(found, trails, self.end, &chain),
        }
    }
}

/// The objects that keep the most memory alive, given with the bytes of each, those with the most first. The paths to
/// them were learned.
pub fn largest<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, nodes: &[(NodeId, u64)]) -> Vec<Largest> {
    let mut numbers: Map<String, usize> = Map::default();
    let mut largest: Vec<Largest> = Vec::new();
    for &(node, bytes) in nodes {
        let number = *numbers.entry(signature(trails, node)).or_insert(largest.len());
        if let Some(alike) = largest.get_mut(number) {
            alike.bytes += bytes;
            alike.alike += 1;
            continue;
        }
        let chain = trails.chain(node);
        largest.push(Largest {
            bytes,
            alike: 1,
            phrase: trails.phrase(&chain),
            folded: folded(found, trails, node, &chain),
            chain: links(found, trails, node, &chain),
        });
    }
    largest.sort_by_key(|each| std::cmp::Reverse(each.bytes));
    largest
}

/// The chain to a node.
fn links<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, end: NodeId, chain: &[LinkId]) -> Vec<Link> {
    let mut links: Vec<Link> = chain.iter().map(|&id| link(found, trails, id)).collect();
    if let Some(last) = links.last_mut() {
        // The last of repeated links is where the objects accumulate.
        let name = trails.names.node(end);
        if name.text == last.text {
            last.count = name.count;
            last.retained = found.retained(end);
        }
    }
    links
}

fn link<D: Describe>(found: Found<'_>, trails: &Trails<'_, D>, id: LinkId) -> Link {
    let link = trails.links.get(id);
    let (name, (file, line)) = (trails.names.name(link.name), link.place(&trails.names));
    Link {
        text: name.text.clone(),
        edge: link.before.map(|_| trails.names.label(link.edge.0).clone()),
        phrase: trails.links.text(id).to_owned(),
        count: name.count,
        retained: found.retained(link.node),
        kind: link.kind,
        file: file.map(str::to_owned),
        line,
    }
}

/// What a chain leaves out of the path to its end.
fn folded<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, end: NodeId, chain: &[LinkId]) -> Option<String> {
    let trail = trails.of(end);
    let nodes = std::iter::successors(Some(end), |&node| found.search.before(node));
    let all = nodes.filter(|&node| node != NodeId::ROOT).count();
    let (to_code, hidden) = (trail.to_code.unwrap_or(0) as usize, trail.hidden as usize);
    let gem = chain.first().and_then(|&first| gem_of_code(trails.names.name(trails.links.get(first).name)));
    let of = gem.map_or_else(String::new, |gem| format!(" of boot code in {gem}"));
    let steps = |number: usize, what: &str, of: &str| {
        let noun = if number == 1 { "step" } else { "steps" };
        (number > 0).then(|| format!("{number} {what}{noun}{of}"))
    };
    let beyond = trail.beyond as usize;
    let repeated = all.saturating_sub(chain.len() + to_code + hidden + beyond);
    let parts = [
        steps(to_code, "", &of),
        steps(hidden, "internal ", ""),
        steps(repeated, "repeated ", ""),
        steps(beyond, "more ", ""),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
