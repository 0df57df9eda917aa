//! Made-up programs: heaps with classes, sampled objects, and what an answer says of them.

use crate::heap::Heap;
use memprofiler_core::graph::{Answer, Edge, Holder, Kind, Question, Sample, SiteName, answer};

/// A heap whose objects have classes, and samples of its objects.
pub struct Program {
    pub heap: Heap,
    pub samples: Vec<Sample>,
    class: usize,
}

pub const VM: usize = 0;
pub const MACHINE_STACK: usize = 1;
pub const FINALIZERS: usize = 2;
pub const GLOBALS: usize = 3;

impl Program {
    /// With all categories of roots, and the class Class.
    pub fn new() -> Self {
        let mut heap = Heap::new(4);
        let class = heap.add(Kind::Anchor, "Class", 0);
        let mut program = Self { heap, samples: Vec::new(), class };
        program.heap.refer(VM, class, Edge::Unknown);
        program
    }

    /// A class that the VM refers to.
    pub fn class(&mut self, name: &str) -> usize {
        let known = self.heap.objects.iter().position(|each| each.kind == Kind::Anchor && each.name.text == name);
        known.unwrap_or_else(|| {
            let class = self.heap.add(Kind::Anchor, name, 0);
            self.heap.objects[class].class = Some(self.class);
            self.heap.refer(VM, class, Edge::Unknown);
            class
        })
    }

    /// An object of 40 bytes of that class, to which `from` refers.
    pub fn object(&mut self, class: &str, from: usize, edge: Edge) -> usize {
        self.of_kind(Kind::Plain, class, class, from, edge)
    }

    /// An object with a name of its own.
    pub fn of_kind(&mut self, kind: Kind, class: &str, name: &str, from: usize, edge: Edge) -> usize {
        let class = self.class(class);
        let object = self.heap.add(kind, name, 40);
        self.heap.objects[object].class = Some(class);
        self.heap.refer(from, object, edge);
        object
    }

    /// A part of the VM, to which `from` refers.
    pub fn internal(&mut self, kind: Kind, name: &str, from: usize, edge: Edge) -> usize {
        let object = self.heap.add(kind, name, 40);
        self.heap.refer(from, object, edge);
        object
    }

    /// So many Strings that are sampled, allocated at site 0.
    pub fn strings(&mut self, count: usize, from: usize, edge: &Edge) -> Vec<usize> {
        let strings: Vec<usize> = (0..count).map(|_| self.object("String", from, edge.clone())).collect();
        strings.iter().for_each(|&string| self.sample(string, 0));
        strings
    }

    /// Samples an object, which stands for ten.
    pub fn sample(&mut self, object: usize, site: u32) {
        let bytes = self.heap.objects[object].bytes;
        let address = Heap::address(object);
        self.samples.push(Sample { address, site, class: None, weight: 10.0, bytes, window: None });
    }

    pub fn answer(&self) -> Answer {
        self.answer_to(&Question::default())
    }

    pub fn answer_to(&self, question: &Question) -> Answer {
        let graph = self.heap.graph();
        let sites: Vec<SiteName> = (1..=20)
            .map(|line| SiteName { name: format!("a.rb:{line}"), line: Some(line), ..SiteName::default() })
            .collect();
        let mut describer = self.heap.describer(&graph);
        let answer = answer(&graph, &self.samples, &sites, question, &mut describer);
        // What holds samples, and a few others: not all that is before them in a list.
        assert!(describer.asked.len() <= self.samples.len() + 100);
        answer
    }

    /// The holders of the first site.
    pub fn holders(&self) -> Vec<Holder> {
        self.answer().sites.swap_remove(0).holders
    }

    /// The only holder of the only site, which has everything.
    pub fn holder(&self) -> Holder {
        let mut holders = self.holders();
        assert_eq!((holders.len(), holders[0].share), (1, 1.0), "{holders:#?}");
        holders.swap_remove(0)
    }
}

pub fn ivar(name: &str) -> Edge {
    Edge::InstanceVariable(name.to_owned())
}

pub fn constant(name: &str) -> Edge {
    Edge::Constant { name: name.to_owned(), file: Some("/app/a.rb".to_owned()), line: Some(2) }
}

pub fn local(name: &str) -> Edge {
    Edge::Local(name.to_owned())
}

/// What an example or chain says, link by link.
pub fn phrases(links: &[memprofiler_core::graph::Link]) -> Vec<&str> {
    links.iter().map(|link| &*link.phrase).collect()
}
