//! How objects refer to others: each is searched once for all the references that are asked for.

use super::super::frames::LAYOUT;
use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::object::{Type, class, flags, is_heap, read, type_of};
use super::classes::ByAddress;
use super::describer::{Describer, Known};
use super::locals::Locals;
use super::tables::constants;
use super::text;
use super::variables::{each_pair, each_variable, variable};
use super::walk::is_fields;
use memprofiler_core::graph::{Edge, Graph, NodeId};
use rb_sys::{ID, VALUE};

/// The labels of the edges from one node to some children.
pub struct Labels {
    children: Vec<VALUE>,
    labels: ByAddress<Edge>,
}

impl Labels {
    /// All unknown.
    pub fn new(graph: &Graph, children: &[NodeId]) -> Self {
        let children: Vec<VALUE> = children.iter().map(|&child| graph.address(child)).collect();
        let labels = children.iter().map(|&child| (child, Edge::Unknown)).collect();
        Self { children, labels }
    }

    /// Labels the edge to `child`, if it is wanted and not labelled yet.
    pub fn add(&mut self, child: VALUE, label: impl FnOnce() -> Edge) {
        if let Some(edge) = self.labels.get_mut(&child).filter(|edge| **edge == Edge::Unknown) {
            *edge = label();
        }
    }

    /// Labels what has no label yet, by its address.
    pub fn add_each(&mut self, label: impl Fn(VALUE) -> Edge) {
        for (&child, edge) in &mut self.labels {
            if *edge == Edge::Unknown {
                *edge = label(child);
            }
        }
    }

    /// Labels what has no label yet.
    pub fn add_rest(&mut self, label: &Edge) {
        self.add_each(|_| label.clone());
    }

    /// In the order of the children.
    pub fn finish(self) -> Vec<Edge> {
        self.children.iter().map(|child| self.labels.get(child).cloned().unwrap_or_default()).collect()
    }
}

impl Describer<'_> {
    /// Labels what `object` refers to.
    ///
    /// # Safety
    /// By the contract of [`Describer::new`], if `object` was reached.
    pub(super) unsafe fn label(&self, object: VALUE, labels: &mut Labels) {
        // SAFETY: the object is alive, and each function gets the type that it takes.
        unsafe {
            let kind = type_of(object);
            match kind {
                Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE => return,
                Type::IMEMO => return self.label_internal(object, labels),
                Type::ICLASS => return label_class(object, labels),
                _ => {}
            }
            label_class_word(object, labels);
            if kind != Type::DATA {
                label_variables(object, labels);
            }
            match kind {
                Type::CLASS | Type::MODULE => {
                    self.label_constants(object, labels);
                    label_class(object, labels);
                }
                Type::ARRAY => self.label_elements(object, labels),
                Type::HASH => self.label_entries(object, labels),
                Type::STRUCT => self.label_members(object, labels),
                Type::DATA => self.label_data(object, labels),
                Type::OBJECT => {}
                _ => labels.add_rest(&Edge::Inside),
            }
        }
    }

    /// # Safety
    /// As for [`label`](Self::label).
    unsafe fn label_constants(&self, class: VALUE, labels: &mut Labels) {
        if !self.prepared.checked.constants {
            return;
        }
        // SAFETY: the class is alive, and nothing changes it.
        for constant in unsafe { constants(class) } {
            labels.add(constant.value, || {
                // SAFETY: the constant has not changed.
                let (name, place) = unsafe { (constant.name(), constant.place()) };
                let (file, line) = place.unzip();
                name.map_or(Edge::Unknown, |name| Edge::Constant { name, file, line })
            });
        }
    }

    /// # Safety
    /// As for [`label`](Self::label).
    unsafe fn label_elements(&self, array: VALUE, labels: &mut Labels) {
        if self.known(array) == Some(Known::Finalizers) {
            return labels.add_rest(&Edge::Finalizer);
        }
        // The elements of an Array may be in a hidden one that several share.
        // SAFETY: what a live Array refers to is alive.
        let is_shared = |child| unsafe { type_of(child) == Type::ARRAY && class(child) == 0 };
        labels.add_each(|child| if is_shared(child) { Edge::Inside } else { Edge::Element });
    }

    /// # Safety
    /// As for [`label`](Self::label).
    unsafe fn label_entries(&self, hash: VALUE, labels: &mut Labels) {
        let variables = self.known(hash) == Some(Known::ThreadVariables);
        // SAFETY: the Hash is alive, and so are its keys and values.
        unsafe {
            each_pair(hash, |key, value| {
                labels.add(value, || match text::symbol(key) {
                    Some(name) if variables => Edge::ThreadVariable(name),
                    name => Edge::Value(name),
                });
                labels.add(key, || Edge::Key);
            });
            if let Some(layout) = LAYOUT.filter(|_| self.prepared.checked.defaults) {
                labels.add(read(hash as *const u8, layout.hash_ifnone) as VALUE, || Edge::Default);
            }
        }
    }

    /// # Safety
    /// As for [`label`](Self::label).
    unsafe fn label_members(&self, object: VALUE, labels: &mut Labels) {
        // SAFETY: the Struct and its class are alive. It has as many members as it says, and they are read with an
        // index below that, an immediate value, which does not raise.
        unsafe {
            let members = members(class(object), self.prepared.ids.members);
            let count = rb_sys::rb_struct_size(object) as usize >> 1;
            for index in 0..count {
                let value = rb_sys::rb_struct_aref(object, (index << 1 | 1) as VALUE);
                labels.add(value, || {
                    let name =
                        if members == 0 { None } else { text::symbol(rb_sys::rb_ary_entry(members, index as _)) };
                    name.map_or(Edge::Inside, Edge::Member)
                });
            }
        }
    }

    /// # Safety
    /// As for [`label`](Self::label); `object` must be a T_IMEMO.
    unsafe fn label_internal(&self, object: VALUE, labels: &mut Labels) {
        // SAFETY: it is alive.
        unsafe {
            if is_fields(object) {
                return label_variables(object, labels);
            }
            if imemo_type(object) == Some(layout::IMEMO_ENV) && self.prepared.checked.captured {
                let (locals, _) = Locals::of_environment(object);
                for (index, value) in locals.values() {
                    labels.add(value, || locals.name(index).map_or(Edge::Unknown, Edge::Local));
                }
            }
        }
    }
}

/// # Safety
/// The GVL must be held, and `object` be alive and no T_IMEMO or T_ICLASS.
unsafe fn label_class_word(object: VALUE, labels: &mut Labels) {
    // SAFETY: the object is alive, and so is its class.
    unsafe {
        let word = class(object);
        labels.add(word, || if is_singleton(word) { Edge::Singleton } else { Edge::Class });
    }
}

/// # Safety
/// The GVL must be held, and `object` be alive.
pub(super) unsafe fn label_variables(object: VALUE, labels: &mut Labels) {
    // SAFETY: as required of the caller.
    unsafe {
        each_variable(object, |id, value| labels.add(value, || variable_label(id)));
    }
}

/// # Safety
/// The GVL must be held.
unsafe fn variable_label(id: ID) -> Edge {
    // SAFETY: as required of the caller.
    match unsafe { text::id(id) } {
        Some(name) if name.starts_with("@@") => Edge::ClassVariable(name),
        Some(name) if name.starts_with('@') => Edge::InstanceVariable(name),
        // A hidden variable, of the VM's or of an extension.
        _ => Edge::Inside,
    }
}

/// # Safety
/// The GVL must be held, and `class` be a live T_CLASS, T_MODULE or T_ICLASS.
unsafe fn label_class(class: VALUE, labels: &mut Labels) {
    // SAFETY: the function reads a word of the class. What the class refers to is alive; a method entry has its name at
    // the layout's offset.
    unsafe {
        labels.add(rb_sys::rb_class_get_superclass(class), || Edge::Superclass);
        labels.add_each(|child| {
            if imemo_type(child) != Some(layout::IMEMO_MENT) {
                return Edge::Unknown;
            }
            text::id(read(child as *const u8, layout::ME_CALLED_ID) as ID).map_or(Edge::Unknown, Edge::Method)
        });
    }
}

/// The Array of the names of a Struct's members, or 0.
///
/// # Safety
/// The GVL must be held, and `class` be the class of a live Struct.
unsafe fn members(mut class: VALUE, name: ID) -> VALUE {
    while is_heap(class) {
        // SAFETY: the class is alive, and so is its superclass.
        unsafe {
            let found = if type_of(class) == Type::CLASS { variable(class, name) } else { 0 };
            if found != 0 {
                return if type_of(found) == Type::ARRAY { found } else { 0 };
            }
            class = rb_sys::rb_class_get_superclass(class);
        }
    }
    0
}

/// Whether `class` is a singleton class.
///
/// # Safety
/// The GVL must be held, and `class` be alive if it is a heap reference.
pub(super) unsafe fn is_singleton(class: VALUE) -> bool {
    // SAFETY: it is alive.
    is_heap(class)
        && unsafe {
            type_of(class) == Type::CLASS
                && LAYOUT.is_some_and(|layout| flags(class) as usize & layout.fl_singleton != 0)
        }
}
