//! Who holds the objects of a site.

use super::accumulation::accumulation_points;
use super::answer::{Holder, Link};
use super::phrase::Words;
use super::trails::{LinkId, Trail, Trails};
use super::{Describe, Dominators, Edge, Graph, Kind, NodeId, Search};
use crate::hash::Map;
use std::collections::BTreeMap;

/// How many holders of a site are reported, and how many samples are considered as an example for each.
const MOST: usize = 10;
const EXAMPLES: usize = 64;

/// A sampled object that was found in the graph.
#[derive(Debug, Clone, Copy)]
pub struct Located {
    /// Its node.
    pub node: NodeId,
    /// How many objects it stands for.
    pub objects: f64,
    /// The bytes of those.
    pub bytes: f64,
}

/// The graph with what was found out about it.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub graph: &'a Graph,
    pub search: &'a Search,
    pub dominators: &'a Dominators,
}

/// Objects of a site with the same chain.
#[derive(Debug)]
pub struct Group {
    samples: u64,
    objects: f64,
    bytes: f64,
    /// How many chains say the same.
    alike: u64,
    /// Where the one with the most bytes ends.
    end: NodeId,
    /// An object below that.
    example: NodeId,
    /// The last node on the path to the example that has other referrers, and whether the chain has such nodes.
    pub contested: Option<NodeId>,
    is_chain_contested: bool,
}

/// The objects of a site by what holds them, those with the most bytes first.
///
/// A chain ends where objects accumulate. It is told along the path of the search, which leads there, but for objects
/// that other paths reach, too: for these it ends at the object that refers to them. Chains that say the same are put
/// together, like LeakCanary's leaks by the signature of their path, and a thread's or fiber's name makes no difference.
pub fn groups<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, objects: &[Located]) -> Vec<Group> {
    let weights: Vec<(NodeId, f64)> = objects.iter().map(|object| (object.node, object.bytes)).collect();
    let points = accumulation_points(found.graph, found.dominators, &weights);
    let mut at_point: Map<NodeId, usize> = Map::default();
    points.iter().for_each(|&point| *at_point.entry(point).or_default() += 1);
    let mut by_end: BTreeMap<NodeId, Vec<Located>> = BTreeMap::new();
    for (&object, &point) in objects.iter().zip(&points) {
        let is_alone = point == object.node && at_point[&point] == 1;
        let end =
            if is_alone || !leads_through(trails, point, object.node) { referrer(trails, object.node) } else { point };
        by_end.entry(end).or_default().push(object);
    }
    let mut by_signature: BTreeMap<String, Vec<(NodeId, Vec<Located>)>> = BTreeMap::new();
    for (end, objects) in by_end {
        by_signature.entry(signature(trails, end)).or_default().push((end, objects));
    }
    let mut groups: Vec<Group> = by_signature.into_values().filter_map(|ends| group(found, trails, &ends)).collect();
    // The sort is stable, and equal ones are in the order of their signatures.
    groups.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    groups.truncate(MOST);
    groups
}

/// Whether the path to an object leads through a node, and shows that.
fn leads_through<D: Describe>(trails: &mut Trails<'_, D>, point: NodeId, object: NodeId) -> bool {
    let place = trails.paths.place(point);
    trails.paths.backwards(object).any(|node| node == place)
        && (trails.of(object).code.is_none() || trails.of(point).code.is_some())
}

/// What refers to an object, or the object itself if the reference has a name.
fn referrer<D: Describe>(trails: &mut Trails<'_, D>, object: NodeId) -> NodeId {
    let place = trails.paths.place(object);
    let link = trails.of(object).link.map(|link| trails.link(link)).filter(|link| link.node == place);
    let is_named = link.is_some_and(|link| matches!(link.edge, Some((_, Words::Attached(_) | Words::Instead(_)))));
    let before = trails.paths.before(place).filter(|_| !is_named);
    before.map_or(object, |(_, before)| before)
}

/// The chain on several lines, without a thread's or fiber's name.
fn signature<D: Describe>(trails: &mut Trails<'_, D>, end: NodeId) -> String {
    let link = trails.of(end).link;
    let chain = trails.chain(link);
    let phrases: Vec<&str> = chain.iter().map(|&link| &*trails.link(link).phrase).collect();
    let phrases = phrases.join("\n");
    match chain.first().map(|&link| trails.link(link)) {
        Some(first) if trails.graph.kind(first.node) == Kind::Thread => {
            let class = first.name.text.split(' ').next().unwrap_or_default();
            phrases.replace(&first.name.text, class)
        }
        _ => phrases,
    }
}

fn group<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, ends: &[(NodeId, Vec<Located>)]) -> Option<Group> {
    let bytes = |objects: &[Located]| objects.iter().map(|object| object.bytes).sum::<f64>();
    // The first of those with the most bytes.
    let (end, objects) = ends.iter().rev().max_by(|(_, one), (_, other)| bytes(one).total_cmp(&bytes(other)))?;
    let candidates = objects.iter().take(EXAMPLES).map(|object| object.node);
    let contests: Vec<(NodeId, Contest)> = candidates.map(|node| (node, contest(found, trails, *end, node))).collect();
    let (example, contest) = contests.iter().min_by_key(|(_, contest)| contest.last.is_some())?;
    let all = || ends.iter().flat_map(|(_, objects)| objects);
    Some(Group {
        samples: all().count() as u64,
        objects: all().map(|object| object.objects).sum(),
        bytes: all().map(|object| object.bytes).sum(),
        alike: ends.len() as u64,
        end: *end,
        example: *example,
        contested: contest.last,
        is_chain_contested: contest.in_chain,
    })
}

/// Where other references than those of a path lead.
#[derive(Debug, Default)]
struct Contest {
    /// To the last such node of the path.
    last: Option<NodeId>,
    /// Whether also to one of the chain, which ends before the path.
    in_chain: bool,
}

/// Everything that refers to a node is dominated by the node's dominator, so one that is dominated by what its path tells
/// has no other path.
fn contest<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, end: NodeId, object: NodeId) -> Contest {
    let end = trails.paths.place(end);
    let (mut contest, mut in_chain) = (Contest::default(), false);
    let mut next = Some(trails.paths.place(object));
    while let Some(node) = next {
        in_chain |= node == end;
        // What leads to code is not shown.
        let before = trails.paths.before(node).filter(|_| found.graph.kind(node) != Kind::Code);
        if before.is_some_and(|(parent, _)| found.dominators.dominator(node) != Some(parent)) {
            contest.last = contest.last.or(Some(node));
            contest.in_chain |= in_chain;
        }
        next = before.map(|(_, place)| place);
    }
    contest
}

impl Group {
    /// The group as a part of an answer, for a site with so many bytes.
    pub fn holder<D: Describe>(
        &self,
        found: Found<'_>,
        trails: &mut Trails<'_, D>,
        bytes: f64,
        also: Vec<String>,
    ) -> Holder {
        let trail = trails.of(self.end);
        let chain = trails.chain(trail.link);
        let example = trails.of(self.example).link;
        let example = trails.chain(example);
        let example = example.strip_prefix(&*chain).unwrap_or_default();
        let mut links: Vec<Link> = chain.iter().map(|&id| link(found, trails, id)).collect();
        if let Some(last) = links.last_mut() {
            // The last of repeated links is where the objects accumulate.
            let name = trails.names.node(self.end);
            if name.text == last.text {
                last.retained = found.dominators.retained(self.end, found.graph);
                last.count = name.count;
            }
        }
        Holder {
            share: if bytes > 0.0 { self.bytes / bytes } else { 0.0 },
            samples: self.samples,
            objects: self.objects,
            bytes: self.bytes,
            exclusive: !self.is_chain_contested,
            also,
            alike: self.alike,
            phrase: trails.phrase(&chain),
            folded: folded(found, &trail, self.end, chain.len()),
            example: example.iter().map(|&id| link(found, trails, id)).collect(),
            chain: links,
        }
    }
}

fn link<D: Describe>(found: Found<'_>, trails: &Trails<'_, D>, id: LinkId) -> Link {
    let shown = trails.link(id);
    let (file, line) = shown.place();
    Link {
        text: shown.name.text.clone(),
        edge: shown.edge.as_ref().map(|(edge, _)| Edge::clone(edge)),
        phrase: shown.phrase.to_string(),
        count: shown.name.count,
        retained: found.dominators.retained(shown.node, found.graph),
        kind: found.graph.kind(shown.node),
        file,
        line,
    }
}

/// What a chain with so many links leaves out.
fn folded(found: Found<'_>, trail: &Trail, end: NodeId, links: usize) -> Option<String> {
    let nodes = std::iter::successors(Some(end), |&node| found.search.before(node));
    let all = nodes.filter(|&node| node != NodeId::ROOT).count();
    let steps = |number: usize, what: &str, of: &str| {
        let noun = if number == 1 { "step" } else { "steps" };
        (number > 0).then(|| format!("{number} {what}{noun}{of}"))
    };
    let (gem, of_code) = trail.code.as_ref().map_or((None, 0), |(gem, steps)| (gem.as_deref(), *steps));
    let of = gem.map_or_else(|| " to the code".to_owned(), |gem| format!(" of boot code in {gem}"));
    let repeated = all.saturating_sub(links + of_code + trail.hidden);
    let parts = [steps(of_code, "", &of), steps(trail.hidden, "internal ", ""), steps(repeated, "repeated ", "")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
