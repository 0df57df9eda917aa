//! Adds up sampled objects by path.

use super::answer::{Path, PathFrame, PathTree};
use super::links::LinkId;
use super::question::Sample;
use super::trails::Trails;
use super::{Describe, NodeId};
use crate::hash::Map;
use crate::window_group::WindowGroup;
use std::collections::BTreeMap;

/// Sums of samples whose paths say the same. Frames and paths are numbered in the order in which they are first seen.
#[derive(Default)]
pub struct PathSums {
    frames: Vec<PathFrame>,
    frame_numbers: Map<PathFrame, u32>,
    /// The nodes of the tree of paths.
    nodes: Vec<(Option<u32>, u32)>,
    node_numbers: Map<(Option<u32>, u32), u32>,
    of_links: Map<LinkId, u32>,
    texts: Vec<String>,
    text_numbers: Map<String, u32>,
    sums: BTreeMap<Key, (u64, f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    site: u32,
    end: Option<u32>,
    class: u32,
    window: Option<WindowGroup>,
}

impl PathSums {
    /// Adds a sample of a site with that name.
    pub fn add<D: Describe>(&mut self, sample: &Sample, node: NodeId, site: &str, trails: &mut Trails<'_, D>) {
        let (site, class) = (self.text(site), self.text(trails.names.class(sample, Some(node))));
        let link = trails.of(node).link;
        let key = Key { site, end: self.end(link, trails), class, window: sample.window };
        let (samples, objects, bytes) = self.sums.entry(key).or_default();
        *samples += 1;
        *objects += sample.weight;
        *bytes += sample.weighted_bytes();
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.text_numbers.get(text) {
            return known;
        }
        self.texts.push(text.to_owned());
        self.text_numbers.insert(text.to_owned(), self.texts.len() as u32 - 1);
        self.texts.len() as u32 - 1
    }

    /// The number of the last node of the path whose last link is given.
    fn end<D: Describe>(&mut self, last: Option<LinkId>, trails: &Trails<'_, D>) -> Option<u32> {
        let new = |&link: &LinkId| !self.of_links.contains_key(&link);
        let new: Vec<LinkId> = std::iter::successors(last, |&id| trails.links.get(id).before).take_while(new).collect();
        for &id in new.iter().rev() {
            let link = trails.links.get(id);
            let (file, line) = link.place(&trails.names);
            let (name, file) = (trails.links.text(id).to_owned(), file.unwrap_or_default().to_owned());
            let frame = PathFrame { name, file, line: line.unwrap_or(0) };
            let frames = &mut self.frames;
            let frame = *self.frame_numbers.entry(frame).or_insert_with_key(|frame| {
                frames.push(frame.clone());
                frames.len() as u32 - 1
            });
            let node = (link.before.and_then(|before| self.of_links.get(&before).copied()), frame);
            let nodes = &mut self.nodes;
            let number = *self.node_numbers.entry(node).or_insert_with(|| {
                nodes.push(node);
                nodes.len() as u32 - 1
            });
            self.of_links.insert(id, number);
        }
        last.and_then(|last| self.of_links.get(&last).copied())
    }

    /// The paths.
    pub fn finish(self) -> PathTree {
        let Self { frames, nodes, texts, sums, .. } = self;
        let paths = sums.into_iter().map(|(key, (samples, objects, bytes))| Path {
            site: texts[key.site as usize].clone(),
            class: texts[key.class as usize].clone(),
            end: key.end,
            samples,
            objects,
            bytes,
            window: key.window.map(|window| window.number() as u8),
        });
        PathTree { frames, nodes, paths: paths.collect() }
    }
}
