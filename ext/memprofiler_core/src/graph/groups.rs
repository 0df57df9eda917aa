//! The objects of a site by what holds them.

use super::accumulation::accumulation_points;
use super::contest::Contest;
use super::found::Found;
use super::phrase::Words;
use super::trails::{Trails, gem_of_code};
use super::{Describe, Edge, Kind, NodeId};
use crate::hash::Map;
use std::collections::BTreeMap;

/// How many objects are considered as an example of a group.
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

/// Objects of a site with the same chain.
#[derive(Debug)]
pub struct Group {
    /// How many were sampled.
    pub samples: u64,
    /// How many objects they stand for.
    pub objects: f64,
    /// The bytes of those.
    pub bytes: f64,
    /// How many chains say the same.
    pub alike: u64,
    /// Where the one with the most bytes ends.
    pub end: NodeId,
    /// An object below that, of the class with the most bytes: one that other references reach, too, if they reach most of
    /// those.
    pub example: NodeId,
    /// Where these lead.
    pub contest: Contest,
}

/// The objects of a site by what holds them, those with the most bytes first.
///
/// A chain ends where objects accumulate. It is told along the path of the search, which leads there, but for objects
/// that other paths reach, too: for these it ends at the object that refers to them. Chains that say the same are put
/// together, like LeakCanary's leaks by the signature of their path, and the name of a thread, fiber or method makes no
/// difference.
pub fn groups<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, objects: &[Located]) -> Vec<Group> {
    let weights: Vec<(NodeId, f64)> = objects.iter().map(|object| (object.node, object.bytes)).collect();
    let points = accumulation_points(found.graph, found.dominators, &weights);
    let mut at_point: Map<NodeId, usize> = Map::default();
    points.iter().for_each(|&point| *at_point.entry(point).or_default() += 1);
    let mut passages = Passages::default();
    let mut by_end: BTreeMap<NodeId, Vec<Located>> = BTreeMap::new();
    for (&object, &point) in objects.iter().zip(&points) {
        let is_alone = point == object.node && at_point[&point] == 1;
        let leads_through = !is_alone && passages.lead_through(trails, point, object.node);
        let end = if leads_through { point } else { referrer(trails, object.node) };
        by_end.entry(end).or_default().push(object);
    }
    let mut by_signature: BTreeMap<String, Vec<(NodeId, Vec<Located>)>> = BTreeMap::new();
    for (end, objects) in by_end {
        by_signature.entry(signature(trails, end)).or_default().push((end, objects));
    }
    let mut groups: Vec<Group> = by_signature.into_values().filter_map(|ends| group(found, trails, &ends)).collect();
    // The sort is stable, and equal ones are in the order of their signatures.
    groups.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    groups
}

/// Which nodes far from the roots have paths that lead through a node: samples of a long list share most of their paths.
#[derive(Default)]
struct Passages(Map<NodeId, (NodeId, bool)>);

impl Passages {
    /// Shorter paths are walked again.
    const FAR: usize = 16;

    /// Whether the path to an object leads through a node, and shows that.
    fn lead_through<D: Describe>(&mut self, trails: &mut Trails<'_, D>, point: NodeId, object: NodeId) -> bool {
        let place = trails.paths.place(point);
        let (mut walked, mut leads) = (Vec::new(), false);
        for node in trails.paths.backwards(object) {
            let known = self.0.get(&node).filter(|(of, _)| *of == place).map(|&(_, leads)| leads);
            if node == place || known.is_some() {
                leads = known.unwrap_or(true);
                break;
            }
            walked.push(node);
        }
        if walked.len() > Self::FAR {
            self.0.extend(walked.into_iter().map(|node| (node, (place, leads))));
        }
        leads && (trails.of(object).to_code.is_none() || trails.of(point).to_code.is_some())
    }
}

/// What refers to an object, or the object itself if the reference has a name.
fn referrer<D: Describe>(trails: &mut Trails<'_, D>, object: NodeId) -> NodeId {
    let place = trails.paths.place(object);
    let link = trails.of(object).link.map(|link| trails.links.get(link)).filter(|link| link.node == place);
    let words = link.and_then(|link| trails.links.reference(link, &trails.names));
    let is_named = matches!(words, Some(Words::Attached(_) | Words::Instead(_)));
    let before = trails.paths.before(place).filter(|_| !is_named);
    before.map_or(object, |(_, before)| before)
}

/// The chain on several lines, without the names of threads, fibers and methods. Code is told by its place.
pub fn signature<D: Describe>(trails: &mut Trails<'_, D>, end: NodeId) -> String {
    let chain = trails.chain(end);
    let phrases: Vec<&str> = chain.iter().map(|&link| trails.links.text(link)).collect();
    chain.iter().map(|&link| trails.links.get(link)).fold(phrases.join("\n"), |told, link| {
        let name = trails.names.name(link.name);
        let told = match trails.names.label(link.edge.0) {
            Edge::Method(method) => told.replace(&format!("{method} →"), "→"),
            _ => told,
        };
        match (link.kind, &name.file) {
            (Kind::Thread | Kind::EndedThread, _) => {
                told.replace(&name.text, name.text.split(' ').next().unwrap_or_default())
            }
            (Kind::Code, Some(file)) if gem_of_code(name).is_none() => {
                told.replace(&name.text, &format!("code at {file}:{}", name.line.unwrap_or(0)))
            }
            _ => told,
        }
    })
}

fn group<D: Describe>(found: Found<'_>, trails: &mut Trails<'_, D>, ends: &[(NodeId, Vec<Located>)]) -> Option<Group> {
    let bytes = |objects: &[Located]| objects.iter().map(|object| object.bytes).sum::<f64>();
    // The first of those with the most bytes.
    let (end, objects) = ends.iter().rev().max_by(|(_, one), (_, other)| bytes(one).total_cmp(&bytes(other)))?;
    let class = largest_class(found, objects);
    let candidates = objects.iter().filter(|object| found.graph.class(object.node) == class).take(EXAMPLES);
    let contests = candidates.map(|object| (object, Contest::of(found, &mut trails.paths, *end, object.node)));
    let (contested, others): (Vec<_>, Vec<_>) = contests.partition(|(_, contest)| contest.last.is_some());
    let bytes = |some: &[(&Located, Contest)]| some.iter().map(|(object, _)| object.bytes).sum::<f64>();
    let (example, contest) = *if bytes(&contested) > bytes(&others) { contested } else { others }.first()?;
    let all = || ends.iter().flat_map(|(_, objects)| objects);
    Some(Group {
        samples: all().count() as u64,
        objects: all().map(|object| object.objects).sum(),
        bytes: all().map(|object| object.bytes).sum(),
        alike: ends.len() as u64,
        end: *end,
        example: example.node,
        contest,
    })
}

/// The class with the most bytes, if it is not hidden.
fn largest_class(found: Found<'_>, objects: &[Located]) -> Option<NodeId> {
    let mut by_class: BTreeMap<Option<NodeId>, f64> = BTreeMap::new();
    for object in objects {
        *by_class.entry(found.graph.class(object.node)).or_default() += object.bytes;
    }
    by_class.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?.0
}
