//! Makes an answer.

use super::answer::{Answer, Class, Site, Unreachable};
use super::estimates::Sums;
use super::found::Found;
use super::groups::{Group, Located, groups};
use super::holders;
use super::largest::largest;
use super::names::Names;
use super::others::others;
use super::path_sums::PathSums;
use super::paths::Paths;
use super::trails::Trails;
use super::{Describe, Dominators, Graph, NodeId, Question, Sample, Search, SiteName};
use crate::hash::Map;
use std::collections::BTreeMap;

/// How many classes and holders of a site are told.
const CLASSES: usize = 3;
const HOLDERS: usize = 10;
/// How many of the largest objects are looked at: several may be alike.
const ALIKE: usize = 100;

/// A sample with the node of its object, if the graph has that.
type Looked<'a> = (&'a Sample, Option<NodeId>);

/// Who holds the sampled objects. Their sites are indices of `sites`.
pub fn answer(
    graph: &Graph,
    samples: &[Sample],
    sites: &[SiteName],
    question: &Question,
    describe: &mut impl Describe,
) -> Answer {
    // In this order, since finding dominators takes the most memory.
    let dominators = Dominators::new(graph);
    let search = Search::new(graph);
    let found = Found { graph, search: &search, dominators: &dominators };
    let names = Names::new(graph, describe);
    let mut trails = Trails::new(graph, Paths::new(graph, &search), names, &question.directory);
    let located: Vec<Looked<'_>> = samples.iter().map(|sample| (sample, graph.node(sample.address))).collect();
    let mut large = if question.largest > 0 { largest(graph, &dominators) } else { Vec::new() };
    large.truncate(ALIKE);
    let sampled = located.iter().filter_map(|&(_, node)| node);
    let edges = trails.edges(sampled.chain(large.iter().map(|&(node, _)| node)));
    trails.names.learn(edges);

    let mut paths = PathSums::default();
    for &(sample, node) in &located {
        if let (Some(node), Some(site)) = (node, sites.get(sample.site as usize)) {
            paths.add(sample, node, &site.name, &mut trails);
        }
    }
    let unreachable: Vec<&Sample> =
        located.iter().filter(|(_, node)| node.is_none()).map(|&(sample, _)| sample).collect();
    let drafts = drafts(found, &mut trails, &located, question.limit);
    let others = others(found, &mut trails, drafts.iter().flat_map(|draft| &draft.groups));
    let mut largest = holders::largest(found, &mut trails, &large);
    largest.truncate(question.largest);
    let roots = graph.out(NodeId::ROOT).len();
    Answer {
        objects: (graph.len() - 1 - roots) as u64,
        bytes: graph.nodes().map(|node| graph.bytes(node)).sum(),
        edges: (graph.edges() - roots) as u64,
        samples: samples.len() as u64,
        greatest_weight: samples.iter().map(|sample| sample.weight).fold(1.0, f64::max),
        unreachable: Unreachable {
            samples: unreachable.len() as u64,
            objects: sum(unreachable.iter().map(|sample| sample.weight)),
            bytes: sum(unreachable.iter().map(|sample| sample.weighted_bytes())),
        },
        sites: drafts.into_iter().map(|draft| draft.finish(found, &mut trails, sites, &others)).collect(),
        largest,
        paths: paths.finish(),
    }
}

/// The sum; of nothing 0, where `Iterator::sum` says -0.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, std::ops::Add::add)
}

/// What is known of a site before the other references were searched.
struct Draft {
    site: u32,
    sums: Sums,
    unreachable_bytes: f64,
    classes: Vec<Class>,
    groups: Vec<Group>,
    other_groups: Vec<Group>,
}

/// The sites with the most bytes, those first.
fn drafts<D: Describe>(
    found: Found<'_>,
    trails: &mut Trails<'_, D>,
    samples: &[Looked<'_>],
    limit: usize,
) -> Vec<Draft> {
    let mut by_site: BTreeMap<u32, (Sums, Vec<Looked<'_>>)> = BTreeMap::new();
    for &(sample, node) in samples {
        let (sums, of_site) = by_site.entry(sample.site).or_default();
        sums.add(sample);
        of_site.push((sample, node));
    }
    let mut sites: Vec<_> = by_site.into_iter().collect();
    // The sort is stable: of equal ones, the first comes first.
    sites.sort_by(|(_, (one, _)), (_, (other, _))| other.byte_count.total_cmp(&one.byte_count));
    sites.truncate(limit);
    let drafts = sites.into_iter().map(|(site, (sums, of_site))| {
        let (mut objects, mut unreachable_bytes) = (Vec::new(), 0.0);
        for &(sample, node) in &of_site {
            let bytes = sample.weighted_bytes();
            match node {
                Some(node) => objects.push(Located { node, objects: sample.weight, bytes }),
                None => unreachable_bytes += bytes,
            }
        }
        let mut groups = groups(found, trails, &objects);
        let other_groups = groups.split_off(groups.len().min(HOLDERS));
        Draft { site, sums, unreachable_bytes, classes: classes(trails, &of_site), groups, other_groups }
    });
    drafts.collect()
}

/// The classes with the most bytes.
fn classes<D: Describe>(trails: &mut Trails<'_, D>, samples: &[Looked<'_>]) -> Vec<Class> {
    let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
    for &(sample, node) in samples {
        *bytes.entry(trails.names.class(sample, node).to_owned()).or_default() += sample.weighted_bytes();
    }
    let mut classes: Vec<Class> = bytes.into_iter().map(|(name, bytes)| Class { name, bytes }).collect();
    classes.sort_by(|one, other| other.bytes.total_cmp(&one.bytes));
    classes.truncate(CLASSES);
    classes
}

impl Draft {
    fn finish<D: Describe>(
        self,
        found: Found<'_>,
        trails: &mut Trails<'_, D>,
        sites: &[SiteName],
        others: &Map<NodeId, Vec<String>>,
    ) -> Site {
        let SiteName { name, file, line, function } = sites.get(self.site as usize).cloned().unwrap_or_default();
        let all = self.sums.byte_count;
        let holders = self.groups.iter().map(|group| {
            let also = group.contest.last.and_then(|node| others.get(&node)).cloned().unwrap_or_default();
            group.holder(found, trails, all, also)
        });
        Site {
            holders: holders.collect(),
            other_holders: self.other_groups.len() as u64,
            other_holders_bytes: sum(self.other_groups.iter().map(|group| group.bytes)),
            name,
            file,
            line,
            function,
            samples: self.sums.samples,
            objects: self.sums.objects(),
            bytes: self.sums.bytes(),
            classes: self.classes,
            unreachable_bytes: self.unreachable_bytes,
        }
    }
}
