//! Everything that the roots reach.

use super::super::frames::LAYOUT;
use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::machine_stack::overwrite_remains;
use super::super::memsize::{self, slot_size};
use super::super::object::{Type, flags, is_heap};
use super::super::{protect, threads};
use super::classes::{self, ByAddress, Classes, Named};
use super::prepared::Prepared;
use super::references::{each_child, each_root};
use super::types::DataType;
use memprofiler_core::graph::{Builder, Graph, Kind};
use rb_sys::VALUE;
use std::ffi::c_void;
use std::mem::zeroed;

/// Whose functions tell how much memory extensions' objects take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All: only for a copy of the process, since an extension's function may do anything.
    All,
    /// Only the VM's own; objects of extensions count by their slot.
    Own,
}

/// Adds everything that the roots reach to `builder`, breadth first.
///
/// References to a named class are added for one of its instances only. On Ruby 4.0 the VM keeps the instance variables
/// of all but plain objects in objects of its own; these are no nodes, but belong to the object whose variables they
/// have. What this gem's own threads refer to does not count as held by them: their stacks mention what they have looked
/// at. From 3.4 on, what only a finalizer refers to is not reached: the VM does not report finalizers as roots.
///
/// # Safety
/// The GVL must be held, and no other thread run Ruby code before this function returns. There must be no other
/// Ractors.
pub unsafe fn walk(builder: Builder, prepared: &Prepared, sizes: Sizes) -> Graph {
    // SAFETY: as required above.
    let classes = Classes::new(unsafe { Named::new(prepared) });
    let mut walk = Walk { builder, prepared, sizes, classes, vm_types: ByAddress::default(), fields: Vec::new() };
    overwrite_remains();
    // SAFETY: the GVL is held; collections run only when something allocates.
    unsafe {
        let is_own = prepared.is_own(threads::current_context());
        each_root(|category, root| {
            let kind = match category {
                "global_tbl" => Kind::Anchor,
                "machine_context" if is_own => Kind::Cache,
                _ => Kind::Category,
            };
            walk.builder.category(kind, category);
            walk.builder.edge(root);
        });
        while let Some((_, address)) = walk.builder.next() {
            walk.visit(address);
        }
    }
    walk.builder.finish()
}

struct Walk<'a> {
    builder: Builder,
    prepared: &'a Prepared,
    sizes: Sizes,
    classes: Classes,
    /// Which types of T_DATA are measured by the VM's own code.
    vm_types: ByAddress<bool>,
    /// The objects with the instance variables of the object that is visited.
    fields: Vec<VALUE>,
}

impl Walk<'_> {
    /// # Safety
    /// As for [`walk`]; `object` must be reachable.
    unsafe fn visit(&mut self, object: VALUE) {
        // SAFETY: a reachable object is alive, or its slot is free if it is only an old value on a machine stack.
        unsafe {
            let kind = Type::of_flags(flags(object));
            if matches!(kind, Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE) {
                self.builder.object(Kind::Plain, 0, 0);
                return;
            }
            let class = if kind.is_internal() { classes::Class::default() } else { self.classes.of(object) };
            let bytes = self.size(object, kind);
            let meaning = self.meaning(object, kind);
            self.builder.object(meaning, bytes, class.visible);
            let ignored = if class.implied { class.word } else { 0 };
            if HAS_FIELDS {
                self.add_with_fields(object, kind, ignored);
                if !self.fields.is_empty() {
                    let bytes = bytes + self.add_fields(object);
                    self.builder.object(meaning, bytes, class.visible);
                }
            } else {
                let builder = &mut self.builder;
                each_child(object, |child| {
                    if child != ignored {
                        builder.edge(child)
                    }
                });
            }
        }
    }

    /// Adds the references of `object`, but not to the objects with its instance variables, which it puts aside.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit).
    unsafe fn add_with_fields(&mut self, object: VALUE, kind: Type, ignored: VALUE) {
        let (builder, fields) = (&mut self.builder, &mut self.fields);
        let anywhere = matches!(kind, Type::CLASS | Type::MODULE | Type::DATA | Type::STRUCT);
        // Of other types, it comes first.
        let mut may_be = anywhere || kind != Type::OBJECT;
        // SAFETY: the object is alive, and so is what it refers to.
        unsafe {
            each_child(object, |child| {
                if child == ignored {
                    return;
                }
                if may_be && is_fields(child) {
                    fields.push(child);
                } else {
                    builder.edge(child);
                }
                may_be = anywhere;
            });
        }
    }

    /// Adds what the instance variables of `object` refer to, and returns their size.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit).
    unsafe fn add_fields(&mut self, object: VALUE) -> u64 {
        let (builder, mut bytes) = (&mut self.builder, 0);
        for fields in self.fields.drain(..) {
            // SAFETY: a live object refers to them.
            unsafe {
                bytes += memsize::of_plain(fields).unwrap_or(0) as u64;
                each_child(fields, |child| {
                    if child != object {
                        builder.edge(child)
                    }
                });
            }
        }
        bytes
    }

    /// # Safety
    /// As for [`visit`](Self::visit); `kind` must be the object's type.
    unsafe fn meaning(&self, object: VALUE, kind: Type) -> Kind {
        // SAFETY: the object is alive.
        unsafe {
            match kind {
                Type::CLASS | Type::MODULE => self.classes.named.kind(object),
                Type::DATA => self.meaning_of_data(object),
                Type::IMEMO => match (imemo_type(object), LAYOUT) {
                    (Some(layout::IMEMO_ISEQ), _) => Kind::Code,
                    (Some(number), Some(layout))
                        if number == layout.imemo_callcache || number == layout.imemo_constcache =>
                    {
                        Kind::Cache
                    }
                    _ => Kind::Plain,
                },
                _ => Kind::Plain,
            }
        }
    }

    /// # Safety
    /// As for [`visit`](Self::visit); `object` must be a T_DATA.
    unsafe fn meaning_of_data(&self, object: VALUE) -> Kind {
        let types = self.prepared.types();
        // SAFETY: the object is alive.
        match unsafe { DataType::of(object) } {
            None => Kind::Plain,
            data_type if data_type == types.thread || data_type == types.fiber => {
                // A fiber may refer to all that is on this very stack, down to where it was when it changed fibers.
                overwrite_remains();
                // SAFETY: as above, a Thread or Fiber, in whose context nothing runs, or this function.
                unsafe {
                    match self.prepared.context(object) {
                        _ if self.prepared.has_ended(object) => Kind::EndedThread,
                        Some(context) if self.prepared.is_own(context) => Kind::Cache,
                        _ => Kind::Thread,
                    }
                }
            }
            Some(data_type) => match data_type.name().to_bytes() {
                b"ractor" => Kind::Thread,
                b"VM/cc_table" => Kind::Cache,
                _ => Kind::Plain,
            },
        }
    }

    /// Whether the VM's own code measures a T_DATA.
    ///
    /// # Safety
    /// As for [`visit`](Self::visit); `object` must be a T_DATA.
    unsafe fn is_measured_by_vm(&mut self, object: VALUE) -> bool {
        // SAFETY: the object is alive.
        let Some(data_type) = (unsafe { DataType::of(object) }) else { return true };
        // SAFETY: the object is alive, and of a type.
        *self.vm_types.entry(data_type.address()).or_insert_with(|| unsafe { is_of_vm(object) })
    }

    /// # Safety
    /// As for [`visit`](Self::visit); `kind` must be the object's type.
    unsafe fn size(&mut self, object: VALUE, kind: Type) -> u64 {
        // SAFETY: the object is alive. Of extensions' functions, only what the caller has allowed is called.
        let size = unsafe {
            if kind != Type::DATA {
                memsize::of_plain(object)
            } else if self.sizes == Sizes::All || self.is_measured_by_vm(object) {
                // An extension may raise.
                protect(|| memsize::of_data(object)).ok()
            } else {
                None
            }
        };
        // SAFETY: it stays alive on this stack while its extension measures it.
        size.unwrap_or_else(|| unsafe { slot_size(object) }) as u64
    }
}

/// Whether the VM's own code measures objects of this type.
///
/// # Safety
/// The GVL must be held; `object` must be alive and of that type.
unsafe fn is_of_vm(object: VALUE) -> bool {
    // SAFETY: a typed T_DATA has a type, which lives as long as it does.
    let Some(function) = (unsafe { (*rb_sys::RTYPEDDATA_TYPE(object)).function.dsize }) else { return true };
    let library = |address: *const c_void| {
        // SAFETY: a C struct in which zero means that there is nothing.
        let mut found: libc::Dl_info = unsafe { zeroed() };
        // SAFETY: this only searches.
        (unsafe { libc::dladdr(address, &raw mut found) } != 0).then_some(found.dli_fbase as usize)
    };
    let vm = library(rb_sys::rb_gc_enable as *const c_void);
    vm.is_some() && library(function as *const c_void) == vm
}

/// Whether this Ruby keeps instance variables in objects of its own.
pub const HAS_FIELDS: bool = match LAYOUT {
    Some(layout) => layout.imemo_fields <= layout::IMEMO_TYPE_MASK,
    None => false,
};

/// Whether `object` is what has the instance variables of another one.
///
/// # Safety
/// `object` must be alive if it is a heap reference.
pub unsafe fn is_fields(object: VALUE) -> bool {
    // SAFETY: as required of the caller.
    HAS_FIELDS
        && is_heap(object)
        && LAYOUT.is_some_and(|layout| unsafe { imemo_type(object) } == Some(layout.imemo_fields))
}
