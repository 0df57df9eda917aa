//! What rbspy-ruby-structs knows about each release of Ruby.

use crate::by_hand;
use crate::entry::{Entry, Figure};
use std::mem::{offset_of, zeroed};

/// What the bindings of one release of Ruby contain.
#[derive(Debug)]
pub struct Release {
    /// Major, minor and patch version.
    pub version: (u32, u32, u32),
    /// All figures, always in the same order.
    pub entries: Vec<Entry>,
}

macro_rules! field {
    ($name:ident = $struct:ident.$($field:ident).+, $doc:literal) => {
        field!($name = $struct => $struct.$($field).+, $doc)
    };
    // With the group to which it belongs where it is another struct on some Rubies.
    ($name:ident = $group:ident => $struct:ident.$($field:ident).+, $doc:literal) => {
        Entry {
            group: concat!("struct ", stringify!($group)),
            name: stringify!($name),
            // bindgen adds a `_` to names that are Rust keywords.
            c: concat!(stringify!($struct) $(, ".", stringify!($field))+).trim_end_matches('_'),
            doc: $doc,
            figure: Figure::Field {
                offset: offset_of!(ruby::$struct, $($field).+),
                width: width_of(|record: &ruby::$struct| &record.$($field).+),
            },
        }
    };
}

/// A link of a thread that up to 3.2 is in a union, which safe code does not read.
macro_rules! ready {
    ($ruby:ident, $($field:ident).+) => {
        Entry {
            group: "struct rb_thread_struct",
            name: "THREAD_READY",
            c: concat!("rb_thread_struct" $(, ".", stringify!($field))+),
            doc: "the next in that list",
            figure: Figure::Field {
                offset: offset_of!(rbspy_ruby_structs::$ruby::rb_thread_struct, $($field).+),
                width: 8,
            },
        }
    };
}

/// The thread that has the lock of its Ractor, and what has the number by which Linux knows a thread.
macro_rules! threads {
    (3 1 $ruby:ident) => {
        [
            field!(RACTOR_RUNNING = rb_ractor_struct.threads.gvl.owner, "the thread that has the GVL, or null"),
            Entry {
                group: "struct rb_thread_struct",
                name: "THREAD_NATIVE",
                c: "rb_thread_struct.nt",
                doc: "what runs it; 0 up to 3.1, where that is no struct of its own",
                figure: Figure::Field { offset: 0, width: 8 },
            },
            field!(NATIVE_TID = rb_thread_struct => rb_thread_struct.tid, "its number in Linux, in what runs it"),
            field!(RACTOR_READY = rb_ractor_struct.threads.gvl.waitq.n.next, "the list of threads that wait for the GVL"),
            ready!($ruby, native_thread_data.node.gvl.next),
        ]
    };
    ($major:tt $minor:tt $ruby:ident) => {
        [
            field!(RACTOR_RUNNING = rb_ractor_struct.threads.sched.running, "the thread that has the GVL, or null"),
            field!(
                THREAD_NATIVE = rb_thread_struct.nt,
                "what runs it; 0 up to 3.1, where that is no struct of its own"
            ),
            field!(NATIVE_TID = rb_thread_struct => rb_native_thread.tid, "its number in Linux, in what runs it"),
            field!(
                RACTOR_READY = rb_ractor_struct.threads.sched.readyq.n.next,
                "the list of threads that wait for the GVL"
            ),
            ready!($ruby, sched.node.readyq.next),
        ]
    };
}

macro_rules! size {
    ($name:ident = $struct:ident, $doc:literal) => {
        Entry {
            group: concat!("struct ", stringify!($struct)),
            name: stringify!($name),
            c: concat!("sizeof(", stringify!($struct), ")"),
            doc: $doc,
            figure: Figure::Number(size_of::<ruby::$struct>()),
        }
    };
}

/// Values of `$enum`; bindgen prefixes them with its name.
macro_rules! values {
    ($enum:ident: $($name:ident = $value:ident $(, $doc:literal)?;)*) => {
        [$(Entry {
            group: concat!("enum ", stringify!($enum)),
            name: stringify!($name),
            c: stringify!($value).trim_start_matches(concat!(stringify!($enum), "_")),
            doc: concat!($($doc)?),
            figure: Figure::Number($value as usize),
        }),*]
    };
}

/// Up to 3.1 CRuby declares the enum of iseq types inside a struct, so bindgen names the values differently.
macro_rules! rename_iseq_types {
    (3 1 $ruby:ident) => {
        use rbspy_ruby_structs::$ruby::{
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_BLOCK as rb_iseq_type_ISEQ_TYPE_BLOCK,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_CLASS as rb_iseq_type_ISEQ_TYPE_CLASS,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_ENSURE as rb_iseq_type_ISEQ_TYPE_ENSURE,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_EVAL as rb_iseq_type_ISEQ_TYPE_EVAL,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_MAIN as rb_iseq_type_ISEQ_TYPE_MAIN,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_METHOD as rb_iseq_type_ISEQ_TYPE_METHOD,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_PLAIN as rb_iseq_type_ISEQ_TYPE_PLAIN,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_RESCUE as rb_iseq_type_ISEQ_TYPE_RESCUE,
            rb_iseq_constant_body_iseq_type_ISEQ_TYPE_TOP as rb_iseq_type_ISEQ_TYPE_TOP,
        };
    };
    ($major:tt $minor:tt $ruby:ident) => {};
}

/// The field that shows whether there is compiled code. jit_func would not do up to 3.2: it is null if only compiled
/// code calls it.
macro_rules! compiled {
    (3 1 $ruby:ident) => { compiled!(yjit_blocks $ruby) };
    (3 2 $ruby:ident) => { compiled!(yjit_payload $ruby) };
    ($field:ident $ruby:ident) => {
        Entry {
            group: "struct rb_iseq_constant_body",
            name: "ISEQ_BODY_COMPILED",
            c: "rb_iseq_constant_body.yjit_blocks, yjit_payload or jit_entry",
            doc: "what a JIT compiler made of it, or null",
            figure: Figure::Field {
                offset: offset_of!(rbspy_ruby_structs::$ruby::rb_iseq_constant_body, $field),
                width: 8,
            },
        }
    };
    ($major:tt $minor:tt $ruby:ident) => { compiled!(jit_entry $ruby) };
}

/// The value of `imemo_fields`, in scope from 4.0 on.
macro_rules! fields {
    (3 $minor:tt) => {
        0x10
    };
    ($major:tt $minor:tt) => {
        imemo_type_imemo_fields as usize
    };
}

macro_rules! release {
    ($major:tt $minor:tt $patch:tt $ruby:ident) => {{
        use rbspy_ruby_structs::$ruby::{self as ruby, *};
        rename_iseq_types!($major $minor $ruby);
        // SAFETY: the struct has only integers, pointers that may be null, and unions of these.
        let mut definition: rb_method_definition_struct = unsafe { zeroed() };
        definition.set_type(!0);
        let method_type = definition._bitfield_1;
        let structs = [
            field!(EC_VM_STACK = rb_execution_context_struct.vm_stack, "the VM stack's lowest address"),
            field!(EC_VM_STACK_SIZE = rb_execution_context_struct.vm_stack_size, "in words"),
            field!(EC_CFP = rb_execution_context_struct.cfp, "the innermost control frame"),
            field!(EC_FIBER = rb_execution_context_struct.fiber_ptr, "its fiber"),
            field!(
                EC_STACK_START = rb_execution_context_struct.machine.stack_start,
                "where its machine stack starts; the highest address"
            ),
            field!(EC_STACK_SIZE = rb_execution_context_struct.machine.stack_maxsize, "in bytes"),
            field!(EC_LOCAL_STORAGE = rb_execution_context_struct.local_storage, "fiber-local variables, or null"),
            field!(CFP_PC = rb_control_frame_struct.pc, "the next instruction; JITs leave it unset for C functions"),
            field!(CFP_ISEQ = rb_control_frame_struct.iseq, "an iseq unless `VM_FRAME_FLAG_CFRAME` is set"),
            field!(CFP_SELF = rb_control_frame_struct.self_, "the receiver"),
            field!(CFP_EP = rb_control_frame_struct.ep, "the environment; its flags are at `ep[0]`"),
            size!(CFP_SIZE = rb_control_frame_struct, "from one control frame to the next outer one"),
            field!(ISEQ_BODY = rb_iseq_struct.body, "a `rb_iseq_constant_body`"),
            field!(ISEQ_BODY_TYPE = rb_iseq_constant_body.type_, "an `ISEQ_TYPE_*`"),
            field!(ISEQ_BODY_ISEQ_SIZE = rb_iseq_constant_body.iseq_size, "in words"),
            field!(ISEQ_BODY_ISEQ_ENCODED = rb_iseq_constant_body.iseq_encoded, "the code, one word after another"),
            field!(ISEQ_BODY_LOCAL_TABLE = rb_iseq_constant_body.local_table, "the IDs of local variables"),
            field!(ISEQ_BODY_LOCAL_TABLE_SIZE = rb_iseq_constant_body.local_table_size, "how many there are"),
            compiled!($major $minor $ruby),
            field!(ISEQ_BODY_PATHOBJ = rb_iseq_constant_body.location.pathobj, "its path, or an Array that begins with it"),
            field!(ISEQ_BODY_BASE_LABEL = rb_iseq_constant_body.location.base_label, "the method's name"),
            field!(ISEQ_BODY_LABEL = rb_iseq_constant_body.location.label, "such as `block in NAME`"),
            Entry {
                group: "struct rb_iseq_constant_body",
                name: "ISEQ_BODY_FIRST_LINENO",
                c: "rb_iseq_constant_body.location.first_lineno",
                doc: "where it begins; a Ruby Integer up to 3.1",
                figure: Figure::Field {
                    offset: offset_of!(ruby::rb_iseq_constant_body, location.first_lineno),
                    width: 4,
                },
            },
            field!(ISEQ_BODY_INSNS = rb_iseq_constant_body.insns_info.body, "an `iseq_insn_info_entry` for each run of code"),
            field!(ISEQ_BODY_INSNS_SIZE = rb_iseq_constant_body.insns_info.size, "how many there are"),
            field!(
                ISEQ_BODY_INSNS_INDEX = rb_iseq_constant_body.insns_info.succ_index_table,
                "which of them a position belongs to, or null"
            ),
            field!(ISEQ_BODY_LOCAL_ISEQ = rb_iseq_constant_body.local_iseq, "of a block: that of the method around it"),
            field!(INSN_LINE_NO = iseq_insn_info_entry.line_no, "the line"),
            size!(INSN_SIZE = iseq_insn_info_entry, "from one to the next"),
            field!(VM_RACTORS = rb_vm_struct.ractor.set.n.next, "the list of Ractors"),
            field!(VM_MAIN_RACTOR = rb_vm_struct.ractor.main_ractor, "the first Ractor"),
            field!(VM_MAIN_THREAD = rb_vm_struct.ractor.main_thread, "the first thread"),
            field!(RACTOR_NODE = rb_ractor_struct.vmlr_node.next, "the next in the list of Ractors"),
            field!(RACTOR_THREADS = rb_ractor_struct.threads.set.n.next, "the list of its threads"),
            field!(THREAD_NODE = rb_thread_struct.lt_node.next, "the next in the list of threads"),
            field!(THREAD_SELF = rb_thread_struct.self_, "its object"),
            field!(THREAD_RACTOR = rb_thread_struct.ractor, "its Ractor"),
            field!(THREAD_VM = rb_thread_struct.vm, "its VM"),
            field!(THREAD_NAME = rb_thread_struct.name, "its name, or nil"),
            field!(EC_THREAD = rb_execution_context_struct.thread_ptr, "its thread"),
            field!(ST_ENTRIES_START = st_table.entries_start, "the number of the first entry in use"),
            field!(ST_ENTRIES_BOUND = st_table.entries_bound, "the number behind that of the last"),
            field!(ST_ENTRIES = st_table.entries, "hash, key and value of each"),
            field!(ME_DEFINED_CLASS = rb_method_entry_struct.defined_class, "the class that it was found in, or 0"),
            field!(ME_DEF = rb_method_entry_struct.def, "a `rb_method_definition_struct`"),
            field!(ME_CALLED_ID = rb_method_entry_struct.called_id, "the name that it is called by"),
            field!(ME_OWNER = rb_method_entry_struct.owner, "the class or module that it was defined in"),
            Entry {
                group: "struct rb_method_definition_struct",
                name: "METHOD_TYPE_MASK",
                c: "rb_method_definition_struct.type",
                doc: "a bit field in the first byte, a `METHOD_TYPE_*`",
                figure: Figure::Bits(method_type.get(0, 8) as usize),
            },
            field!(METHOD_DEF_ORIGINAL_ID = rb_method_definition_struct.original_id, "the name it was defined by"),
            field!(THREAD_EC = rb_thread_struct.ec, "the execution context"),
            field!(SVAR_CREF_OR_ME = vm_svar.cref_or_me, "what would be in `ep[-2]` without the svar"),
        ];
        let imemo_types = values!(imemo_type:
            IMEMO_ENV = imemo_type_imemo_env, "local variables that outlive their frame";
            IMEMO_CREF = imemo_type_imemo_cref, "a lexical scope";
            IMEMO_SVAR = imemo_type_imemo_svar, "special variables such as `$~`";
            IMEMO_IFUNC = imemo_type_imemo_ifunc, "a block in C";
            IMEMO_MENT = imemo_type_imemo_ment, "a method entry";
            IMEMO_ISEQ = imemo_type_imemo_iseq, "an instruction sequence";
            IMEMO_CALLCACHE = imemo_type_imemo_callcache, "the method that a call found";
            IMEMO_CONSTCACHE = imemo_type_imemo_constcache, "what a constant was found to be";
        );
        let fields = Entry {
            group: "enum imemo_type",
            name: "IMEMO_FIELDS",
            c: "imemo_fields",
            doc: "instance variables of what is no T_OBJECT; more than the mask before 4.0, which has none",
            figure: Figure::Number(fields!($major $minor)),
        };
        let method_types = values!(rb_method_type_t:
            METHOD_TYPE_ISEQ = rb_method_type_t_VM_METHOD_TYPE_ISEQ, "Ruby code";
            METHOD_TYPE_CFUNC = rb_method_type_t_VM_METHOD_TYPE_CFUNC, "a C function";
            METHOD_TYPE_ATTRSET = rb_method_type_t_VM_METHOD_TYPE_ATTRSET, "of `attr_writer`";
            METHOD_TYPE_IVAR = rb_method_type_t_VM_METHOD_TYPE_IVAR, "of `attr_reader`";
            METHOD_TYPE_BMETHOD = rb_method_type_t_VM_METHOD_TYPE_BMETHOD, "of `define_method`";
            METHOD_TYPE_ZSUPER = rb_method_type_t_VM_METHOD_TYPE_ZSUPER, "only a change of visibility";
            METHOD_TYPE_ALIAS = rb_method_type_t_VM_METHOD_TYPE_ALIAS;
            METHOD_TYPE_UNDEF = rb_method_type_t_VM_METHOD_TYPE_UNDEF;
            METHOD_TYPE_NOTIMPLEMENTED = rb_method_type_t_VM_METHOD_TYPE_NOTIMPLEMENTED;
            METHOD_TYPE_OPTIMIZED = rb_method_type_t_VM_METHOD_TYPE_OPTIMIZED, "`send`, `Proc#call`, Struct accessors";
            METHOD_TYPE_MISSING = rb_method_type_t_VM_METHOD_TYPE_MISSING;
            METHOD_TYPE_REFINED = rb_method_type_t_VM_METHOD_TYPE_REFINED;
        );
        let iseq_types = values!(rb_iseq_type:
            ISEQ_TYPE_TOP = rb_iseq_type_ISEQ_TYPE_TOP;
            ISEQ_TYPE_METHOD = rb_iseq_type_ISEQ_TYPE_METHOD;
            ISEQ_TYPE_BLOCK = rb_iseq_type_ISEQ_TYPE_BLOCK;
            ISEQ_TYPE_CLASS = rb_iseq_type_ISEQ_TYPE_CLASS;
            ISEQ_TYPE_RESCUE = rb_iseq_type_ISEQ_TYPE_RESCUE;
            ISEQ_TYPE_ENSURE = rb_iseq_type_ISEQ_TYPE_ENSURE;
            ISEQ_TYPE_EVAL = rb_iseq_type_ISEQ_TYPE_EVAL;
            ISEQ_TYPE_MAIN = rb_iseq_type_ISEQ_TYPE_MAIN;
            ISEQ_TYPE_PLAIN = rb_iseq_type_ISEQ_TYPE_PLAIN;
        );
        Release {
            version: ($major, $minor, $patch),
            entries: structs
                .into_iter()
                .chain(threads!($major $minor $ruby))
                .chain(imemo_types)
                .chain([fields])
                .chain(method_types)
                .chain(iseq_types)
                .chain(by_hand::entries_of(($major, $minor)))
                .collect(),
        }
    }};
}

/// Every release of the supported minors in the crate, oldest first.
pub fn releases() -> Vec<Release> {
    include!(concat!(env!("OUT_DIR"), "/releases.rs"))
}

/// The width of the field that `_get` returns.
const fn width_of<S, F>(_get: fn(&S) -> &F) -> usize {
    size_of::<F>()
}
