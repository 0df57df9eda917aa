//! What only the VM knows about the nodes and edges of a graph.

use super::NodeId;
use serde::{Deserialize, Serialize};

/// Knows nodes and edges that an answer reports.
pub trait Describe {
    /// How a programmer would call the node. Not called for the root and its categories.
    fn node(&mut self, node: NodeId) -> NodeName;

    /// The labels of the edges from `parent` to each of `children`, in their order. Called once for a parent with all
    /// the children that matter, and perhaps a second time with others. Not called for caches and code, nor for
    /// categories of roots but those that are [`Kind::Anchor`](super::Kind).
    fn edges(&mut self, parent: NodeId, children: &[NodeId]) -> Vec<Edge>;
}

/// What a node is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeName {
    /// Of a class its name, of a block `block at app/foo.rb:7`, of a thread `Thread "puma 003"`, else the name of its
    /// class: never its content.
    pub text: String,
    /// The number of entries of an Array or Hash.
    pub count: Option<u64>,
    /// The file that defines it, of a class or code.
    pub file: Option<String>,
    /// The line in that file.
    pub line: Option<i64>,
}

/// How one object refers to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It is not known how.
    #[default]
    Unknown,
    /// By an instance variable, with its `@`.
    InstanceVariable(String),
    /// By a class variable, with its `@@`.
    ClassVariable(String),
    /// By a constant of a class or module.
    Constant {
        /// Its name, without that of the class.
        name: String,
        /// The file that defines it.
        file: Option<String>,
        /// The line in that file.
        line: Option<i64>,
    },
    /// By a global variable, with its `$`.
    Global(String),
    /// As an element of an Array.
    Element,
    /// As a value of a Hash, with its key if that is a Symbol (without the colon).
    Value(Option<String>),
    /// As a key of a Hash.
    Key,
    /// As a member of a Struct.
    Member(String),
    /// By `Thread#[]`.
    ThreadLocal(String),
    /// By `Thread#thread_variable_get`.
    ThreadVariable(String),
    /// By a local variable, of a frame on a thread's or fiber's stack, or captured by a block.
    Local(String),
    /// As `self`, of a frame or captured by a block.
    Receiver,
    /// As the superclass.
    Superclass,
    /// As the singleton class.
    Singleton,
    /// By a method of that name.
    Method(String),
    /// As its class.
    Class,
    /// As a finalizer.
    Finalizer,
    /// From C: the object wraps a C structure that keeps it.
    Inside,
    /// As a Hash's default value or block.
    Default,
}
