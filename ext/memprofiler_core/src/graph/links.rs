//! The objects that paths show, and how they are told.

use super::names::{EdgeId, NameId, Names};
use super::phrase::{Phrase, Words, words, words_of_singleton};
use super::{Describe, Edge, Kind, NodeId};
use crate::hash::Map;
use crate::table::Table;

/// The longest sequence of links whose immediate repetition is left out.
const PERIOD: usize = 3;
/// The longest chain of links. Each object at the end of a chain that was longer would take as much memory.
const DEPTH: u32 = 256;

/// A link by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(u32);

/// A phrase by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PhraseId(u32);

/// An object that a path shows.
#[derive(Debug, Clone, Copy)]
pub struct ShownLink {
    /// The one that refers to it, possibly through others that are not shown; None if the path begins here.
    pub before: Option<LinkId>,
    /// How that refers to it, and whether through its singleton class.
    pub edge: (EdgeId, bool),
    /// The object.
    pub node: NodeId,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: NameId,
}

/// A link as it is told.
struct Entry {
    link: ShownLink,
    phrase: PhraseId,
    /// How many links lead to it, and this one.
    depth: u32,
}

/// All links of all paths, as a tree.
pub struct Links<'a> {
    links: Vec<Entry>,
    phrases: Table<String>,
    known_phrases: Map<(NameId, Kind, (EdgeId, bool), NameId), PhraseId>,
    directory: &'a str,
}

impl<'a> Links<'a> {
    /// None. Files are told without `directory`.
    pub fn new(directory: &'a str) -> Self {
        Self { links: Vec::new(), phrases: Table::default(), known_phrases: Map::default(), directory }
    }

    /// A link.
    pub fn get(&self, id: LinkId) -> ShownLink {
        self.links[id.0 as usize].link
    }

    /// The reference to a link with both of its ends.
    pub fn text(&self, id: LinkId) -> &str {
        &self.phrases.values()[self.links[id.0 as usize].phrase.0 as usize]
    }

    /// The links that lead to one, and that one, the first of the path first.
    pub fn chain(&self, last: Option<LinkId>) -> Vec<LinkId> {
        let mut chain: Vec<LinkId> = std::iter::successors(last, |&id| self.get(id).before).collect();
        chain.reverse();
        chain
    }

    /// Adds a link, but not if it and those before it repeat what is said before them: then it is the earlier one.
    pub fn append<D: Describe>(&mut self, link: ShownLink, names: &Names<'_, D>) -> LinkId {
        let phrase = self.phrase_of(link, names);
        self.repeated(link.before, phrase).unwrap_or_else(|| {
            let depth = link.before.map_or(0, |before| self.links[before.0 as usize].depth) + 1;
            self.links.push(Entry { link, phrase, depth });
            LinkId(self.links.len() as u32 - 1)
        })
    }

    /// Whether a chain that ends with a link is too long to go on.
    pub fn is_deep(&self, last: LinkId) -> bool {
        self.links[last.0 as usize].depth >= DEPTH
    }

    fn phrase_of<D: Describe>(&mut self, link: ShownLink, names: &Names<'_, D>) -> PhraseId {
        let text = &names.name(link.name).text;
        let Some(before) = link.before.map(|before| self.get(before)) else {
            return PhraseId(self.phrases.id_or(text.as_str(), || text.clone()));
        };
        let key = (before.name, before.kind, link.edge, link.name);
        if let Some(&known) = self.known_phrases.get(&key) {
            return known;
        }
        let mut phrase = Phrase::new(&names.name(before.name).text, None);
        phrase.push(&self.words(before, link.edge, names), text, None);
        let id = PhraseId(self.phrases.id(&phrase.finish()));
        self.known_phrases.insert(key, id);
        id
    }

    fn repeated(&self, before: Option<LinkId>, phrase: PhraseId) -> Option<LinkId> {
        let ids: Vec<LinkId> = std::iter::successors(before, |&id| self.get(id).before).take(2 * PERIOD).collect();
        let earlier = ids.iter().map(|id| self.links[id.0 as usize].phrase);
        let phrases: Vec<PhraseId> = std::iter::once(phrase).chain(earlier).collect();
        let repeats =
            |&period: &usize| 2 * period <= phrases.len() && (0..period).all(|at| phrases[at] == phrases[at + period]);
        (1..=PERIOD).find(repeats).map(|period| ids[period - 1])
    }

    fn words<D: Describe>(&self, from: ShownLink, edge: (EdgeId, bool), names: &Names<'_, D>) -> Words {
        let (name, label) = (&names.name(from.name).text, names.label(edge.0));
        match edge.1 {
            true => words_of_singleton(name, label, self.directory),
            false => words(name, from.kind, label, self.directory),
        }
    }

    /// The words for how a link is referred to; None if the path begins with it.
    pub fn reference<D: Describe>(&self, link: ShownLink, names: &Names<'_, D>) -> Option<Words> {
        link.before.map(|before| self.words(self.get(before), link.edge, names))
    }

    /// The links of a chain on one line.
    pub fn phrase<D: Describe>(&self, chain: &[LinkId], names: &Names<'_, D>) -> String {
        let Some((&first, rest)) = chain.split_first() else { return String::new() };
        let first = names.name(self.get(first).name);
        let mut phrase = Phrase::new(&first.text, first.count);
        for link in rest.iter().map(|&id| self.get(id)) {
            let (name, words) = (names.name(link.name), self.reference(link, names));
            phrase.push(&words.unwrap_or(Words::Relation("")), &name.text, name.count);
        }
        phrase.finish()
    }
}

impl ShownLink {
    /// The file and line that define the object, or the constant that refers to it.
    pub fn place<'n, D: Describe>(&self, names: &'n Names<'_, D>) -> (Option<&'n str>, Option<i64>) {
        match names.label(self.edge.0) {
            Edge::Constant { file: Some(file), line, .. } => (Some(file), *line),
            _ => {
                let name = names.name(self.name);
                (name.file.as_deref(), name.line)
            }
        }
    }
}
