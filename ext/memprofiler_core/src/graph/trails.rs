//! Paths as chains of links: without what explains nothing.

use super::names::Names;
use super::paths::Paths;
use super::phrase::{Phrase, Words, words, words_of_singleton};
use super::{Describe, Edge, Graph, Kind, NodeId, NodeName};
use crate::analysis::gem;
use crate::hash::Map;
use std::rc::Rc;

/// The longest sequence of links whose immediate repetition is left out.
const PERIOD: usize = 3;

/// A link by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(u32);

/// An object that a path shows.
#[derive(Debug)]
pub struct ShownLink {
    /// The one that refers to it, possibly through others that are not shown; None if the path begins here.
    pub before: Option<LinkId>,
    /// The object.
    pub node: NodeId,
    /// Its name.
    pub name: Rc<NodeName>,
    /// How the link before refers to it.
    pub edge: Option<(Edge, Words)>,
    /// The reference with both of its ends.
    pub phrase: Rc<str>,
}

impl ShownLink {
    /// The file and line that define the object, or the constant that refers to it.
    pub fn place(&self) -> (Option<String>, Option<i64>) {
        match &self.edge {
            Some((Edge::Constant { file: Some(file), line, .. }, _)) => (Some(file.clone()), *line),
            _ => (self.name.file.clone(), self.name.line),
        }
    }
}

/// The path to a node.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    /// The last object that is shown, at the node or before it.
    pub link: Option<LinkId>,
    /// How that refers to the node, if the node itself is not shown.
    edge: Edge,
    through_singleton: bool,
    /// The nodes of the path but for the root.
    steps: usize,
    /// If the path passes through code: its gem, if that is not the program, and how many steps lead there. Of them only the
    /// code is shown.
    pub code: Option<(Option<Rc<str>>, usize)>,
    /// How many other nodes are not shown.
    pub hidden: usize,
}

/// All paths, as a tree.
pub struct Trails<'a, D> {
    /// Their graph.
    pub graph: &'a Graph,
    /// The paths behind them.
    pub paths: Paths<'a>,
    /// What is known of names.
    pub names: Names<'a, D>,
    directory: &'a str,
    links: Vec<ShownLink>,
    trails: Map<NodeId, Trail>,
}

impl<'a, D: Describe> Trails<'a, D> {
    /// For those paths. Files are told without `directory`.
    pub fn new(graph: &'a Graph, paths: Paths<'a>, names: Names<'a, D>, directory: &'a str) -> Self {
        Self { graph, paths, names, directory, links: Vec::new(), trails: Map::default() }
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> &ShownLink {
        &self.links[id.0 as usize]
    }

    /// The links that lead to one, and that one, the first of the path first.
    pub fn chain(&self, last: Option<LinkId>) -> Vec<LinkId> {
        let mut chain: Vec<LinkId> = std::iter::successors(last, |&id| self.link(id).before).collect();
        chain.reverse();
        chain
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
            let Some(node) = next else { break Trail::default() };
            if let Some(known) = self.trails.get(&node) {
                break known.clone();
            }
            new.push(node);
            next = self.paths.before(node).map(|(_, place)| place);
        };
        while let Some(node) = new.pop() {
            let parent = self.paths.before(node).map(|(parent, _)| parent);
            trail = self.extend(trail, parent, node);
            self.trails.insert(node, trail.clone());
        }
        trail
    }

    /// The trail that goes on to `node` with a reference of `parent`, whose trail is given.
    pub fn extend(&mut self, mut trail: Trail, parent: Option<NodeId>, node: NodeId) -> Trail {
        let edge = parent.map_or(Edge::Unknown, |parent| self.names.edge(parent, node));
        let kind = self.graph.kind(node);
        trail.steps += usize::from(kind != Kind::Root);
        let explains = !matches!(edge, Edge::Unknown | Edge::Inside);
        let to_singleton = edge == Edge::Singleton && kind == Kind::Plain;
        if explains {
            trail.edge = edge;
        }
        if to_singleton || !self.is_shown(node) {
            trail.through_singleton |= to_singleton;
            trail.hidden += usize::from(kind != Kind::Root);
            return trail;
        }
        let name = self.names.node(node);
        if kind == Kind::Code {
            let gem = name.file.as_deref().map(gem::of).filter(|&gem| gem != "app");
            let code = Some((gem.map(Rc::from), trail.steps - 1));
            let link = self.begin(node, Rc::new(name_of_code(&name, gem)));
            return Trail { link: Some(link), steps: trail.steps, code, ..Trail::default() };
        }
        let edge = std::mem::take(&mut trail.edge);
        let through_singleton = std::mem::take(&mut trail.through_singleton);
        let link = match trail.link {
            Some(before) => self.append(before, edge, through_singleton, node, name),
            None => self.begin(node, name),
        };
        Trail { link: Some(link), ..trail }
    }

    /// Whether a programmer would know the object.
    fn is_shown(&mut self, node: NodeId) -> bool {
        match self.graph.kind(node) {
            Kind::Root | Kind::Cache => false,
            Kind::Category | Kind::Anchor | Kind::Thread | Kind::Code => true,
            // What has no class, or a name in parentheses, is a part of the VM.
            Kind::Plain => self.graph.class_number(node).is_some() && !self.names.node(node).text.starts_with('('),
        }
    }

    fn begin(&mut self, node: NodeId, name: Rc<NodeName>) -> LinkId {
        let phrase = Rc::from(&*name.text);
        self.add(ShownLink { before: None, node, name, edge: None, phrase })
    }

    fn append(&mut self, before: LinkId, edge: Edge, singleton: bool, node: NodeId, name: Rc<NodeName>) -> LinkId {
        let parent = self.link(before);
        let (from, kind) = (&*parent.name.text, self.graph.kind(parent.node));
        let words = match singleton {
            true => words_of_singleton(from, &edge, self.directory),
            false => words(from, kind, &edge, self.directory),
        };
        let mut phrase = Phrase::new(from, None);
        phrase.push(&words, &name.text, None);
        let phrase: Rc<str> = phrase.finish().into();
        let repeated = self.repeated(before, &phrase);
        repeated.unwrap_or_else(|| {
            self.add(ShownLink { before: Some(before), node, name, edge: Some((edge, words)), phrase })
        })
    }

    /// The earlier link that a link with that phrase repeats, if the ones since then repeat those before it.
    fn repeated(&self, before: LinkId, phrase: &str) -> Option<LinkId> {
        let ids = std::iter::successors(Some(before), |&id| self.link(id).before).take(2 * PERIOD);
        let ids: Vec<LinkId> = ids.collect();
        let phrases: Vec<&str> = std::iter::once(phrase).chain(ids.iter().map(|&id| &*self.link(id).phrase)).collect();
        let repeats = |&period: &usize| {
            2 * period < phrases.len() + 1 && (0..period).all(|at| phrases[at] == phrases[at + period])
        };
        (1..=PERIOD).find(repeats).map(|period| ids[period - 1])
    }

    fn add(&mut self, link: ShownLink) -> LinkId {
        self.links.push(link);
        LinkId(self.links.len() as u32 - 1)
    }

    /// The links of a chain on one line.
    pub fn phrase(&self, chain: &[LinkId]) -> String {
        let Some((&first, rest)) = chain.split_first() else { return String::new() };
        let name = &self.link(first).name;
        let mut phrase = Phrase::new(&name.text, name.count);
        for link in rest.iter().map(|&id| self.link(id)) {
            let unknown = Words::Relation("");
            let words = link.edge.as_ref().map_or(&unknown, |(_, words)| words);
            phrase.push(words, &link.name.text, link.name.count);
        }
        phrase.finish()
    }
}

/// The code of the program by its name, other code by that of its gem.
fn name_of_code(name: &NodeName, gem: Option<&str>) -> NodeName {
    let text = match gem {
        Some(gem) => format!("code of {gem}"),
        None => name.text.trim_start_matches('(').trim_end_matches(')').to_owned(),
    };
    NodeName { text, ..name.clone() }
}
