//! What rbspy-ruby-structs lacks, taken from the sources of CRuby. It is the same from 3.1.0 to 4.0.5.
//!
//! Checked by compiling [`assertions`] against the headers of every release in that range.

use crate::entry::{Entry, Figure};

/// Everything that the bindings lack. `c` is an expression in C.
pub fn entries() -> Vec<Entry> {
    let frame = |name, bits, doc| Entry {
        group: "enum vm_frame_env_flags (vm_core.h), in `ep[0]`",
        name,
        c: name,
        doc,
        figure: Figure::Bits(bits),
    };
    vec![
        Entry {
            group: "struct RTypedData (include/ruby/internal/core/rtypeddata.h)",
            name: "RTYPEDDATA_DATA",
            c: "offsetof(struct RTypedData, data)",
            doc: "what a T_DATA wraps; for a Thread, its `rb_thread_struct`, for a Proc, its `rb_proc_t`",
            figure: Figure::Field { offset: 32, width: size_of::<u64>() },
        },
        Entry {
            group: "imemo_type() (internal/imemo.h)",
            name: "IMEMO_TYPE_SHIFT",
            c: "FL_USHIFT",
            doc: "where in a T_IMEMO's flags its type is, an `IMEMO_*`",
            figure: Figure::Number(12),
        },
        Entry {
            group: "imemo_type() (internal/imemo.h)",
            name: "IMEMO_TYPE_MASK",
            c: "IMEMO_MASK",
            doc: "to apply after the shift",
            figure: Figure::Bits(0xf),
        },
        Entry {
            group: "struct rb_method_definition_struct (method.h)",
            name: "METHOD_DEF_BMETHOD_PROC",
            c: "offsetof(struct rb_method_definition_struct, body.bmethod.proc)",
            doc: "of a `METHOD_TYPE_BMETHOD`: the Proc that define_method was given",
            figure: Figure::Field { offset: 8, width: size_of::<u64>() },
        },
        Entry {
            group: "rb_proc_t (vm_core.h)",
            name: "PROC_BLOCK_CODE",
            c: "offsetof(rb_proc_t, block.as.captured.code)",
            doc: "of a block of type `BLOCK_TYPE_ISEQ`: its instruction sequence",
            figure: Figure::Field { offset: 16, width: size_of::<u64>() },
        },
        Entry {
            group: "rb_proc_t (vm_core.h)",
            name: "PROC_BLOCK_TYPE",
            c: "offsetof(rb_proc_t, block.type)",
            doc: "a `BLOCK_TYPE_*`",
            figure: Figure::Field { offset: 24, width: size_of::<u32>() },
        },
        Entry {
            group: "enum rb_block_type (vm_core.h)",
            name: "BLOCK_TYPE_ISEQ",
            c: "block_type_iseq",
            doc: "a block in Ruby",
            figure: Figure::Number(0),
        },
        frame("VM_FRAME_MAGIC_MASK", 0x7fff_0001, "The kind of frame"),
        frame("VM_FRAME_MAGIC_METHOD", 0x1111_0001, "A method"),
        frame("VM_FRAME_MAGIC_BLOCK", 0x2222_0001, "A block"),
        frame("VM_FRAME_MAGIC_CLASS", 0x3333_0001, "The body of a class or module"),
        frame("VM_FRAME_MAGIC_TOP", 0x4444_0001, "A file that is loaded"),
        frame("VM_FRAME_MAGIC_CFUNC", 0x5555_0001, "A method in C"),
        frame("VM_FRAME_MAGIC_IFUNC", 0x6666_0001, "A block in C: in place of an iseq there is an `IMEMO_IFUNC`"),
        frame("VM_FRAME_MAGIC_EVAL", 0x7777_0001, "The main script or an `eval`"),
        frame("VM_FRAME_MAGIC_RESCUE", 0x7888_0001, "A `rescue` or `ensure` clause"),
        frame(
            "VM_FRAME_MAGIC_DUMMY",
            0x7999_0001,
            "Runs nothing: the outermost frame, or one for a backtrace's sake, which may lack a pc",
        ),
        frame("VM_FRAME_FLAG_BMETHOD", 0x40, "A block that was made a method by `define_method`"),
        frame("VM_FRAME_FLAG_CFRAME", 0x80, "Not Ruby code: neither pc nor iseq has a meaning"),
        frame("VM_ENV_FLAG_LOCAL", 0x2, "The environment of a method or the like: `ep[-1]` is no outer environment"),
    ]
}

/// A C program that compiles, in the source tree of a Ruby, only if the entries are right for it.
pub fn assertions() -> String {
    let assertion =
        |entry: &Entry| format!("_Static_assert({} == {}, \"{}\");\n", entry.c, c_literal(entry), entry.name);
    let assertions: String = entries().iter().map(assertion).collect();
    format!("#include \"vm_core.h\"\n#include \"internal/imemo.h\"\n{assertions}")
}

/// The entry's figure without digit separators, which C lacks.
fn c_literal(entry: &Entry) -> String {
    entry.figure.to_string().replace('_', "")
}
