//! References in words.

use super::{Edge, Kind};

/// How a reference is told after the object that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// Part of the object's name: `.@cards` in `ProductCardCache.@cards → Hash`.
    Attached(String),
    /// What it is to the object: `values` in `Hash → values → String`. Empty if that is not known.
    Relation(&'static str),
    /// Clear without the object: `$recent → Array`.
    Instead(String),
}

/// The words for an edge from an object of that name and kind. Files are told without `directory`.
pub fn words(from: &str, kind: Kind, edge: &Edge, directory: &str) -> Words {
    use Words::{Attached, Instead, Relation};
    match edge {
        Edge::Unknown | Edge::Inside => Relation(""),
        Edge::InstanceVariable(name) | Edge::ClassVariable(name) | Edge::Member(name) => Attached(format!(".{name}")),
        Edge::Constant { name, file, line } => {
            let place = file.as_deref().map_or(String::new(), |file| format!(", {}", place(file, *line, directory)));
            let told = format!("{name} (constant{place})");
            // As in source code.
            if from == "Object" { Instead(told) } else { Attached(format!("::{told}")) }
        }
        Edge::Global(name) => Instead(name.clone()),
        Edge::Value(Some(key)) => Attached(format!("[:{key}]")),
        Edge::Value(None) => Relation("values"),
        Edge::Key => Relation("keys"),
        Edge::Element => Relation("elements"),
        Edge::ThreadLocal(name) => Attached(format!(" local {name}")),
        Edge::ThreadVariable(name) => Attached(format!(" variable {name}")),
        Edge::Local(name) if kind == Kind::Thread => Attached(format!(" local variable {name}")),
        Edge::Local(name) => Attached(format!(" captures {name}")),
        Edge::Receiver if kind == Kind::Thread => Attached(" self".to_owned()),
        Edge::Receiver => Attached(" captures self".to_owned()),
        Edge::Superclass => Relation("superclass"),
        Edge::Singleton => Relation("singleton class"),
        Edge::Method(name) => Attached(format!("#{name}")),
        Edge::Class => Relation("class"),
        Edge::Finalizer if kind == Kind::Category => Instead("finalizer".to_owned()),
        Edge::Finalizer => Relation("finalizer"),
        Edge::Default => Relation("default"),
    }
}

/// The words for an edge from the singleton class of an object, told after that object.
pub fn words_of_singleton(from: &str, edge: &Edge, directory: &str) -> Words {
    if let Edge::Method(name) = edge {
        return Words::Attached(format!(".{name}"));
    }
    match words(from, Kind::Plain, edge, directory) {
        Words::Relation(_) => Words::Relation("singleton class"),
        Words::Attached(told) => Words::Attached(format!(" singleton class{told}")),
        Words::Instead(told) => Words::Attached(format!(" singleton class::{told}")),
    }
}

/// Objects on one line: from the first one's name on, each reference and what it refers to is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    text: String,
    /// The number of entries of the last object.
    count: Option<u64>,
    references: usize,
}

impl Phrase {
    /// Only the first object.
    pub fn new(text: &str, count: Option<u64>) -> Self {
        Self { text: text.to_owned(), count, references: 0 }
    }

    /// Appends a reference and what it refers to. An object's count is told where its entries are what matters.
    pub fn push(&mut self, words: &Words, text: &str, count: Option<u64>) {
        match words {
            Words::Attached(told) => self.text += told,
            Words::Instead(told) if self.references == 0 => self.text.clone_from(told),
            Words::Instead(told) => self.text = format!("{} → {told}", self.text),
            Words::Relation(relation) => {
                self.tell_count();
                if !relation.is_empty() {
                    self.text = format!("{} → {relation}", self.text);
                }
            }
        }
        self.text = format!("{} → {text}", self.text);
        self.count = count;
        self.references += 1;
    }

    fn tell_count(&mut self) {
        if let Some(count) = self.count {
            self.text = format!("{} ({})", self.text, grouped(count));
        }
    }

    /// The line.
    pub fn finish(mut self) -> String {
        self.tell_count();
        self.text
    }
}

/// `FILE:LINE`: files of gems begin with the gem's name and version, others are told without `directory`.
fn place(file: &str, line: Option<i64>, directory: &str) -> String {
    const GEMS: &str = "/gems/";
    let in_gem = file.rfind(GEMS).map(|at| &file[at + GEMS.len()..]);
    let in_gem = in_gem.filter(|rest| rest.split_once('/').is_some_and(|(gem, _)| gem.contains('-')));
    let file = in_gem.unwrap_or_else(|| file.strip_prefix(directory).unwrap_or(file));
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() - 1) % 3 + 1;
    digits.char_indices().fold(String::new(), |mut text, (at, digit)| {
        if at >= first && (at - first) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(from: &str, kind: Kind, edge: Edge, to: &str) -> String {
        let mut phrase = Phrase::new(from, None);
        phrase.push(&words(from, kind, &edge, "/srv/"), to, None);
        phrase.finish()
    }

    fn constant(name: &str, file: Option<&str>, line: Option<i64>) -> Edge {
        Edge::Constant { name: name.to_owned(), file: file.map(str::to_owned), line }
    }

    #[test]
    fn references_read_as_a_programmer_would_write_them() {
        use Kind::{Anchor, Category, Plain, Thread};
        let named = |edge: fn(String) -> Edge, name: &str| edge(name.to_owned());
        let cards = named(Edge::InstanceVariable, "@cards");
        for (from, kind, edge, to, expected) in [
            ("ProductCardCache", Anchor, cards, "Hash", "ProductCardCache.@cards → Hash"),
            ("Bus", Anchor, named(Edge::ClassVariable, "@@instance"), "App", "Bus.@@instance → App"),
            ("Entry", Plain, named(Edge::Member, "who"), "String", "Entry.who → String"),
            ("global variables", Anchor, named(Edge::Global, "$recent"), "Array", "$recent → Array"),
            ("Hash", Plain, Edge::Value(None), "Foo", "Hash → values → Foo"),
            ("Hash", Plain, Edge::Value(Some("user".to_owned())), "User", "Hash[:user] → User"),
            ("Hash", Plain, Edge::Key, "Foo", "Hash → keys → Foo"),
            ("Hash", Plain, Edge::Default, "Proc", "Hash → default → Proc"),
            ("Array", Plain, Edge::Element, "Foo", "Array → elements → Foo"),
            ("Set", Plain, Edge::Inside, "Hash", "Set → Hash"),
            ("Foo", Plain, Edge::Unknown, "Hash", "Foo → Hash"),
            ("Thread \"a\"", Thread, named(Edge::ThreadLocal, "cache"), "Hash", "Thread \"a\" local cache → Hash"),
            ("Thread", Thread, named(Edge::ThreadVariable, "cache"), "Hash", "Thread variable cache → Hash"),
            ("Thread", Thread, named(Edge::Local, "rows in run"), "Array", "Thread local variable rows in run → Array"),
            ("Thread", Thread, Edge::Receiver, "Worker", "Thread self → Worker"),
            ("block at a.rb:7", Plain, named(Edge::Local, "rows"), "Array", "block at a.rb:7 captures rows → Array"),
            ("block at a.rb:7", Plain, Edge::Receiver, "Foo", "block at a.rb:7 captures self → Foo"),
            ("Foo", Anchor, named(Edge::Method, "bar"), "block at a.rb:7", "Foo#bar → block at a.rb:7"),
            ("finalizers", Category, Edge::Finalizer, "block at a.rb:7", "finalizer → block at a.rb:7"),
            ("Foo", Anchor, Edge::Superclass, "Bar", "Foo → superclass → Bar"),
        ] {
            assert_eq!(phrase(from, kind, edge, to), expected);
        }
    }

    #[test]
    fn constants_are_told_with_their_place() {
        let log = || constant("LOG", Some("/srv/app/audit.rb"), Some(2));
        let told = phrase("Audit", Kind::Anchor, log(), "Array");
        assert_eq!(told, "Audit::LOG (constant, app/audit.rb:2) → Array");
        assert_eq!(phrase("Object", Kind::Anchor, log(), "Array"), "LOG (constant, app/audit.rb:2) → Array");
        assert_eq!(
            phrase("Audit", Kind::Anchor, constant("LOG", None, None), "Array"),
            "Audit::LOG (constant) → Array"
        );
        let in_gem = constant("X", Some("/usr/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb"), Some(9));
        let told = phrase("Rack", Kind::Anchor, in_gem, "Hash");
        assert_eq!(told, "Rack::X (constant, rack-2.2.4/lib/rack.rb:9) → Hash");
    }

    #[test]
    fn a_singleton_class_is_told_with_its_object() {
        let told = |edge: Edge| {
            let mut phrase = Phrase::new("Foo", None);
            phrase.push(&words_of_singleton("Foo", &edge, ""), "X", None);
            phrase.finish()
        };
        assert_eq!(told(Edge::Method("bar".to_owned())), "Foo.bar → X");
        assert_eq!(told(Edge::InstanceVariable("@a".to_owned())), "Foo singleton class.@a → X");
        assert_eq!(told(Edge::Unknown), "Foo → singleton class → X");
    }

    #[test]
    fn counts_are_told_where_the_entries_matter() {
        let mut phrase = Phrase::new("Cache", None);
        phrase.push(&Words::Attached(".@all".to_owned()), "Hash", Some(2));
        phrase.push(&Words::Attached("[:cards]".to_owned()), "Hash", Some(1_206_724));
        phrase.push(&Words::Relation("values"), "Array", Some(12));
        assert_eq!(phrase.finish(), "Cache.@all → Hash[:cards] → Hash (1,206,724) → values → Array (12)");
    }

    #[test]
    fn thousands_are_grouped() {
        let told = [0, 7, 999, 1_000, 12_345, 123_456, 1_234_567].map(grouped);
        assert_eq!(told, ["0", "7", "999", "1,000", "12,345", "123,456", "1,234,567"]);
    }
}
