//! Paths as chains of links: without what explains nothing.

use super::links::{LinkId, Links, ShownLink};
use super::names::{EdgeId, NameId, Names};
use super::paths::Paths;
use super::{Describe, Edge, Graph, Kind, NodeId, NodeName};
use crate::analysis::gem;
use crate::hash::Map;

/// The path to a node.
#[derive(Debug, Clone, Copy)]
pub struct Trail {
    /// The last object that is shown, at the node or before it.
    pub link: Option<LinkId>,
    /// How that refers to the node, if the node itself is not shown, and whether through its singleton class.
    edge: (EdgeId, bool),
    /// The nodes of the path but for the root.
    steps: u32,
    /// If the path passes through code of a gem, how many steps lead there. Of them only the code is shown.
    pub to_code: Option<u32>,
    /// How many other nodes are not shown.
    pub hidden: u32,
    /// How many more nodes follow the longest chain that is told.
    pub beyond: u32,
}

impl Trail {
    const EMPTY: Self =
        Self { link: None, edge: (EdgeId::UNKNOWN, false), steps: 0, to_code: None, hidden: 0, beyond: 0 };
}

/// All paths, as a tree.
pub struct Trails<'a, D> {
    /// Their graph.
    pub graph: &'a Graph,
    /// The paths behind them.
    pub paths: Paths<'a>,
    /// What is known of names.
    pub names: Names<'a, D>,
    /// What they show.
    pub links: Links<'a>,
    trails: Map<NodeId, Trail>,
}

impl<'a, D: Describe> Trails<'a, D> {
    /// For those paths. Files are told without `directory`.
    pub fn new(graph: &'a Graph, paths: Paths<'a>, names: Names<'a, D>, directory: &'a str) -> Self {
        Self { graph, paths, names, links: Links::new(directory), trails: Map::default() }
    }

    /// The edges on the paths to all these nodes: pairs of parents and children.
    pub fn edges(&mut self, nodes: impl Iterator<Item = NodeId>) -> Vec<(NodeId, NodeId)> {
        let mut edges = Vec::new();
        let mut seen: Map<NodeId, ()> = Map::default();
        for node in nodes {
            let mut next = Some(self.paths.place(node));
            while let Some(node) = next.filter(|&node| seen.insert(node, ()).is_none()) {
                let before = self.paths.before(node);
                edges.extend(before.map(|(parent, _)| (parent, node)));
                next = before.map(|(_, place)| place);
            }
        }
        edges
    }

    /// The trail to a node along its path, whose edges were learned.
    pub fn of(&mut self, node: NodeId) -> Trail {
        let mut new = Vec::new();
        let mut next = Some(self.paths.place(node));
        let mut trail = loop {
            let Some(node) = next else { break Trail::EMPTY };
            if let Some(&known) = self.trails.get(&node) {
                break known;
            }
            new.push(node);
            next = self.paths.before(node).map(|(_, place)| place);
        };
        while let Some(node) = new.pop() {
            let parent = self.paths.before(node).map(|(parent, _)| parent);
            trail = self.extend(trail, parent, node);
            self.trails.insert(node, trail);
        }
        trail
    }

    /// The trail that goes on to `node` with a reference of `parent`, whose trail is given.
    pub fn extend(&mut self, mut trail: Trail, parent: Option<NodeId>, node: NodeId) -> Trail {
        let id = parent.map_or(EdgeId::UNKNOWN, |parent| self.names.edge(parent, node));
        let (edge, kind) = (self.names.label(id), self.graph.kind(node));
        let to_singleton = *edge == Edge::Singleton && kind == Kind::Plain;
        if !matches!(edge, Edge::Unknown | Edge::Inside) {
            trail.edge.0 = id;
        }
        let step = u32::from(kind != Kind::Root);
        trail.steps += step;
        if to_singleton || !self.is_shown(node) {
            trail.edge.1 |= to_singleton;
            trail.hidden += step;
            return trail;
        }
        let name = self.names.id(node);
        let name = if kind == Kind::Code { self.names.add(&name_of_code(self.names.name(name))) } else { name };
        if kind == Kind::Code && gem_of_code(self.names.name(name)).is_some() {
            let (link, to_code) = (self.append(Trail::EMPTY, node, name), Some(trail.steps - 1));
            return Trail { link: Some(link), steps: trail.steps, to_code, ..Trail::EMPTY };
        }
        if trail.link.is_some_and(|last| self.links.is_deep(last)) {
            trail.beyond += step;
            return trail;
        }
        let link = self.append(trail, node, name);
        Trail { link: Some(link), edge: Trail::EMPTY.edge, ..trail }
    }

    /// Whether a programmer would know the object.
    fn is_shown(&mut self, node: NodeId) -> bool {
        match self.graph.kind(node) {
            Kind::Root => false,
            Kind::Cache => self.graph.category(node).is_some(),
            Kind::Category | Kind::Anchor | Kind::Thread | Kind::EndedThread | Kind::Code => true,
            // What has no class, or a name in parentheses, is a part of the VM.
            Kind::Plain => self.graph.class_number(node).is_some() && !self.names.node(node).text.starts_with('('),
        }
    }

    /// The link after those of the trail.
    fn append(&mut self, trail: Trail, node: NodeId, name: NameId) -> LinkId {
        let Trail { link: before, edge, .. } = trail;
        self.links.append(ShownLink { before, edge, node, kind: self.graph.kind(node), name }, &self.names)
    }

    /// The links to a node on its path, the first of the path first.
    pub fn chain(&mut self, node: NodeId) -> Vec<LinkId> {
        let last = self.of(node).link;
        self.links.chain(last)
    }

    /// The links of a chain on one line.
    pub fn phrase(&self, chain: &[LinkId]) -> String {
        self.links.phrase(chain, &self.names)
    }
}

/// The gem of code, unless it is the program's own.
pub fn gem_of_code(name: &NodeName) -> Option<&str> {
    name.file.as_deref().map(gem::of).filter(|&gem| gem != "app")
}

/// The code of the program by its name, other code by that of its gem.
fn name_of_code(name: &NodeName) -> NodeName {
    let text = match gem_of_code(name) {
        Some(gem) => format!("code of {gem}"),
        None => name.text.trim_start_matches('(').trim_end_matches(')').to_owned(),
    };
    NodeName { text, ..name.clone() }
}
