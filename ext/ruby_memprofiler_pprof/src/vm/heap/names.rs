//! What objects are called: never by their contents.

use super::super::class_names::visible_class;
use super::super::iseq::imemo_type;
use super::super::layout;
use super::super::object::{Type, class, flags, is_heap, read, type_of};
use super::describer::{Describer, Known};
use super::edges::is_singleton;
use super::edges_of_data::entry_of_method;
use super::locals::{Block, Locals, frames};
use super::sets;
use super::tables::constants;
use super::text::{self, SourceLine};
use super::types::DataType;
use memprofiler_core::graph::NodeName;
use rb_sys::{ID, VALUE};

impl Describer<'_> {
    /// The name of `object`.
    ///
    /// # Safety
    /// By the contract of [`Describer::new`], if `object` was reached.
    pub(super) unsafe fn name(&self, object: VALUE) -> NodeName {
        // SAFETY: the object is alive, and each function gets the type that it takes.
        unsafe {
            let kind = type_of(object);
            match self.known(object) {
                Some(Known::ThreadVariables) => return plain("(thread variables)"),
                Some(Known::Finalizers) => return plain("(finalizers)"),
                None => {}
            }
            match kind {
                Type::NONE | Type::NODE | Type::MOVED | Type::ZOMBIE => plain(kind.label()),
                Type::CLASS | Type::MODULE => self.name_of_class(object),
                Type::ICLASS => plain(format!("(inclusion of {})", class_name(class(object)))),
                Type::IMEMO => self.name_of_internal(object),
                Type::DATA => self.name_of_data(object),
                _ => NodeName { count: count(object, kind), ..plain(class_of(object)) },
            }
        }
    }

    /// # Safety
    /// As for [`name`](Self::name); `class` must be a class or module.
    unsafe fn name_of_class(&self, class: VALUE) -> NodeName {
        // SAFETY: the class is alive.
        unsafe {
            let path = text::class_path(class);
            let (file, line) = path.as_deref().and_then(|path| self.place_of_class(class, path)).unzip();
            NodeName { text: path.unwrap_or_else(|| self.text_of_anonymous(class)), count: None, file, line }
        }
    }

    /// Where the constant of a class was set.
    ///
    /// # Safety
    /// As for [`name`](Self::name); `class` must be a class or module.
    unsafe fn place_of_class(&self, class: VALUE, path: &str) -> Option<(String, i64)> {
        if !self.prepared.checked.constants {
            return None;
        }
        // SAFETY: Object never dies.
        let mut scope: VALUE = unsafe { rb_sys::rb_cObject };
        for part in path.split("::") {
            // SAFETY: `scope` is a live class or module, and so is what a constant refers to.
            unsafe {
                let named = |constant: &super::tables::Constant| constant.name().as_deref() == Some(part);
                let constant = constants(scope).find(named)?;
                if constant.value == class {
                    return constant.place();
                }
                if !matches!(type_of(constant.value), Type::CLASS | Type::MODULE) {
                    return None;
                }
                scope = constant.value;
            }
        }
        None
    }

    /// # Safety
    /// As for [`name`](Self::name); `class` must be a class or module without a name.
    unsafe fn text_of_anonymous(&self, class: VALUE) -> String {
        // SAFETY: the class is alive, and so is what it refers to.
        unsafe {
            if is_singleton(class) {
                return match self.attached(class) {
                    object if !is_heap(object) => "singleton class".to_owned(),
                    object if matches!(type_of(object), Type::CLASS | Type::MODULE) => {
                        format!("singleton class of {}", class_name(object))
                    }
                    object => format!("singleton class of an instance of {}", class_of(object)),
                };
            }
            if type_of(class) == Type::MODULE { "anonymous module".to_owned() } else { class_name(class) }
        }
    }

    /// The object of a singleton class.
    ///
    /// # Safety
    /// As for [`name`](Self::name); `class` must be a singleton class.
    #[cfg(ruby_gte_3_2)]
    unsafe fn attached(&self, class: VALUE) -> VALUE {
        unsafe extern "C" {
            /// class.c; public. Raises for any other class.
            fn rb_class_attached_object(class: VALUE) -> VALUE;
        }
        // SAFETY: a singleton class, which is alive.
        unsafe { rb_class_attached_object(class) }
    }

    /// The object of a singleton class.
    ///
    /// # Safety
    /// As for [`name`](Self::name); `class` must be a singleton class.
    #[cfg(not(ruby_gte_3_2))]
    unsafe fn attached(&self, class: VALUE) -> VALUE {
        // SAFETY: the class is alive.
        unsafe { super::variables::variable(class, self.prepared.ids.attached) }
    }

    /// # Safety
    /// As for [`name`](Self::name); `object` must be a T_DATA.
    unsafe fn name_of_data(&self, object: VALUE) -> NodeName {
        let types = self.prepared.types();
        // SAFETY: the object is alive, and each function gets the type that it takes.
        unsafe {
            let Some(data_type) = DataType::of(object) else { return plain(class_of(object)) };
            let is = |other: Option<DataType>| other == Some(data_type);
            if is(types.thread) {
                let name = self.prepared.thread_name(object).map(|name| format!(" {name:?}"));
                let ended = if self.prepared.has_ended(object) { " (ended)" } else { "" };
                if name.is_some() || !ended.is_empty() {
                    return plain(format!("{}{}{ended}", class_of(object), name.unwrap_or_default()));
                }
            }
            if is(types.thread) || is(types.fiber) {
                // A thread's own fiber, with its variables, is an object of the VM's only.
                if let Some(thread) = self.thread_of(object) {
                    return self.name_of_data(thread);
                }
                let begin = self.prepared.context(object).filter(|_| self.prepared.checked.frames);
                let begin = begin.and_then(|context| frames(context).next()).map(|frame| frame.iseq);
                return self.at(&class_of(object), begin.and_then(|iseq| SourceLine::of(iseq)));
            }
            if is(types.block) {
                let iseq = Block::of(object).iseq;
                return if iseq == 0 { plain(class_of(object)) } else { self.at("block", SourceLine::of(iseq)) };
            }
            if is(types.method) {
                let entry = entry_of_method(object);
                return plain(if entry == 0 { class_of(object) } else { format!("Method {}", self.method(entry)) });
            }
            if is(types.set) {
                return NodeName { count: sets::size(object), ..plain(class_of(object)) };
            }
            if class(object) == 0 {
                plain(format!("({})", data_type.name().to_string_lossy()))
            } else {
                plain(class_of(object))
            }
        }
    }

    /// # Safety
    /// As for [`name`](Self::name); `object` must be a T_IMEMO.
    unsafe fn name_of_internal(&self, object: VALUE) -> NodeName {
        // SAFETY: it is alive, and each function gets the type that it takes.
        unsafe {
            match imemo_type(object) {
                Some(layout::IMEMO_MENT) => plain(format!("method {}", self.method(object))),
                Some(layout::IMEMO_ISEQ) => self.parts("code", SourceLine::of(object)),
                Some(layout::IMEMO_ENV) => {
                    let (_, iseq) = Locals::of_environment(object);
                    let is_code = imemo_type(iseq) == Some(layout::IMEMO_ISEQ);
                    self.parts("locals", if is_code { SourceLine::of(iseq) } else { None })
                }
                _ => plain("(internal)"),
            }
        }
    }

    /// `Class#method` or `Class.method` of a method entry.
    ///
    /// # Safety
    /// As for [`name`](Self::name); `entry` must be a method entry.
    unsafe fn method(&self, entry: VALUE) -> String {
        // SAFETY: it has these two words at the layout's offsets; its owner is alive, and so is the object of that.
        unsafe {
            let entry = entry as *const u8;
            let name = text::id(read(entry, layout::ME_CALLED_ID) as ID).unwrap_or_default();
            let owner = read(entry, layout::ME_OWNER) as VALUE;
            if !is_heap(owner) || !matches!(type_of(owner), Type::CLASS | Type::MODULE) {
                return name;
            }
            let object = if is_singleton(owner) { self.attached(owner) } else { 0 };
            if is_heap(object) && matches!(type_of(object), Type::CLASS | Type::MODULE) {
                return format!("{}.{name}", class_name(object));
            }
            format!("{}#{name}", if is_singleton(owner) { self.text_of_anonymous(owner) } else { class_name(owner) })
        }
    }

    /// Such as `block at app/foo.rb:7`.
    fn at(&self, what: &str, place: Option<SourceLine>) -> NodeName {
        match place {
            Some(place) => NodeName {
                text: format!("{what} at {}", place.short(&self.prepared.directory)),
                count: None,
                line: Some(place.line),
                file: Some(place.file),
            },
            None => plain(what),
        }
    }

    /// Such as `(locals of fetch at app/foo.rb:7)`.
    fn parts(&self, what: &str, place: Option<SourceLine>) -> NodeName {
        let label = place.as_ref().map(|place| format!("{what} of {}", place.label));
        let name = self.at(label.as_deref().unwrap_or(what), place);
        NodeName { text: format!("({})", name.text), ..name }
    }
}

fn plain(text: impl Into<String>) -> NodeName {
    NodeName { text: text.into(), ..NodeName::default() }
}

/// The number of entries of an Array or Hash.
///
/// # Safety
/// The GVL must be held; `object` must be alive and of that type.
unsafe fn count(object: VALUE, kind: Type) -> Option<u64> {
    // SAFETY: the functions read a number of the object.
    unsafe {
        match kind {
            Type::ARRAY => Some(rb_sys::RARRAY_LEN(object) as u64),
            Type::HASH => Some(rb_sys::RHASH_SIZE(object) as u64),
            _ => None,
        }
    }
}

/// The name of the class of an object, or of its type if no Ruby program sees it.
///
/// # Safety
/// The GVL must be held, and `object` be alive.
unsafe fn class_of(object: VALUE) -> String {
    // SAFETY: the object is alive, and so is its class.
    unsafe {
        match visible_class(class(object)) {
            Some(class) => class_name(class),
            None => Type::of_flags(flags(object)).label().to_owned(),
        }
    }
}

/// The name of a class or module; of an anonymous class, with that of its nearest named ancestor.
///
/// # Safety
/// The GVL must be held, and `class` be a live class or module.
unsafe fn class_name(class: VALUE) -> String {
    // SAFETY: it is alive, and so are its ancestors.
    unsafe {
        if let Some(path) = text::class_path(class) {
            return path;
        }
        if type_of(class) != Type::CLASS {
            return "anonymous module".to_owned();
        }
        let mut ancestor = rb_sys::rb_class_get_superclass(class);
        while is_heap(ancestor) {
            let path = if type_of(ancestor) == Type::CLASS { text::class_path(ancestor) } else { None };
            if let Some(path) = path {
                return format!("anonymous class (< {path})");
            }
            ancestor = rb_sys::rb_class_get_superclass(ancestor);
        }
        "anonymous class".to_owned()
    }
}
