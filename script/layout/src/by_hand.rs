//! What rbspy-ruby-structs lacks, taken from the sources of CRuby: what is the same from 3.1.0 to 4.0.5, and what
//! differs between minors.
//!
//! Checked by compiling [`assertions`] against the sources of every release in that range.

use crate::entry::{Entry, Figure};

/// What the bindings lack and all minors share. `c` is an expression in C.
pub fn entries() -> Vec<Entry> {
    let field =
        |group, name, c, doc, offset, width| Entry { group, name, c, doc, figure: Figure::Field { offset, width } };
    let word = |group, name, c, doc, offset| field(group, name, c, doc, offset, size_of::<u64>());
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
        word(
            "struct RBasic (include/ruby/internal/core/rbasic.h)",
            "RBASIC_KLASS",
            "offsetof(struct RBasic, klass)",
            "its class; of an `ICLASS`, the module that it stands for",
            8,
        ),
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
        word(
            "struct rb_method_definition_struct (method.h)",
            "METHOD_DEF_ISEQ",
            "offsetof(struct rb_method_definition_struct, body.iseq.iseqptr)",
            "of a `METHOD_TYPE_ISEQ`: its code",
            8,
        ),
        word(
            "rb_proc_t (vm_core.h)",
            "PROC_BLOCK_SELF",
            "offsetof(rb_proc_t, block.as.captured.self)",
            "the receiver in the block; a `rb_binding_t` also begins with a block",
            0,
        ),
        word(
            "rb_proc_t (vm_core.h)",
            "PROC_BLOCK_EP",
            "offsetof(rb_proc_t, block.as.captured.ep)",
            "the environment that the block captured",
            8,
        ),
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
        word("rb_env_t (vm_core.h)", "ENV_ISEQ", "offsetof(rb_env_t, iseq)", "the code that it belongs to, or null", 8),
        word("rb_env_t (vm_core.h)", "ENV_EP", "offsetof(rb_env_t, ep)", "the environment on the heap", 16),
        Entry {
            group: "VM_ENV_DATA_* (vm_core.h)",
            name: "VM_ENV_DATA_SIZE",
            c: "VM_ENV_DATA_SIZE",
            doc: "The words up to and with `ep[0]`, below which the local variables are, the last one on top",
            figure: Figure::Number(3),
        },
        word(
            STRING,
            "STRING_PTR",
            "offsetof(struct RString, as.heap.ptr)",
            "where they are, of a `STRING_NOEMBED`",
            24,
        ),
        Entry {
            group: STRING,
            name: "STRING_NOEMBED",
            c: "RSTRING_NOEMBED",
            doc: "a flag: its bytes are elsewhere",
            figure: Figure::Bits(0x2000),
        },
        Entry {
            group: STRING,
            name: "STRING_EMBED_LEN_SHIFT",
            c: "(RUBY_FL_USHIFT + 2)",
            doc: "up to 3.1: where in the flags the length of an embedded one is, which has 5 bits",
            figure: Figure::Number(14),
        },
        word(ARRAY, "ARRAY_LEN", "offsetof(struct RArray, as.heap.len)", "unless it is an `ARRAY_EMBED`", 16),
        word(ARRAY, "ARRAY_PTR", "offsetof(struct RArray, as.heap.ptr)", "unless it is an `ARRAY_EMBED`", 32),
        word(ARRAY, "ARRAY_EMBEDDED", "offsetof(struct RArray, as.ary)", "the elements of an `ARRAY_EMBED`", 16),
        Entry {
            group: ARRAY,
            name: "ARRAY_EMBED",
            c: "RARRAY_EMBED_FLAG",
            doc: "a flag: its elements are in itself",
            figure: Figure::Bits(0x2000),
        },
        Entry {
            group: ARRAY,
            name: "ARRAY_EMBED_LEN_SHIFT",
            c: "RARRAY_EMBED_LEN_SHIFT",
            doc: "where in the flags the number of elements of an `ARRAY_EMBED` is",
            figure: Figure::Number(15),
        },
        field(ID_TABLE, "ID_TABLE_CAPA", "offsetof(struct rb_id_table, capa)", "the number of items", 0, 4),
        word(ID_TABLE, "ID_TABLE_ITEMS", "offsetof(struct rb_id_table, items)", "one after another", 16),
        Entry {
            group: ID_TABLE,
            name: "ID_ITEM_SIZE",
            c: "sizeof(struct rb_id_item)",
            doc: "from one item to the next",
            figure: Figure::Number(16),
        },
        field(ID_TABLE, "ID_ITEM_KEY", "offsetof(struct rb_id_item, key)", "the serial number of an ID, or 0", 0, 4),
        word(ID_TABLE, "ID_ITEM_VAL", "offsetof(struct rb_id_item, val)", "what belongs to the key", 8),
        Entry {
            group: "symbol.h",
            name: "ID_SCOPE_SHIFT",
            c: "RUBY_ID_SCOPE_SHIFT",
            doc: "where in an ID its serial number is, unless it is an operator's",
            figure: Figure::Number(4),
        },
        field(CONSTANT, "CONST_LINE", "offsetof(rb_const_entry_t, line)", "where it was set", 4, 4),
        word(CONSTANT, "CONST_VALUE", "offsetof(rb_const_entry_t, value)", "undefined for an autoload", 8),
        word(CONSTANT, "CONST_FILE", "offsetof(rb_const_entry_t, file)", "a String or nil", 16),
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

const ID_TABLE: &str = "struct rb_id_table (id_table.c)";
const STRING: &str = "struct RString (include/ruby/internal/core/rstring.h)";
const ARRAY: &str = "struct RArray (include/ruby/internal/core/rarray.h)";
const CONSTANT: &str = "rb_const_entry_t (constant.h)";

/// What the bindings lack of a minor, in the same order for each.
pub fn entries_of((major, minor): (u32, u32)) -> Vec<Entry> {
    let release = (major, minor);
    let word = |group, name, c, doc, offset| Entry {
        group,
        name,
        c,
        doc,
        figure: Figure::Field { offset, width: size_of::<u64>() },
    };
    let class = "struct RClass (internal/class.h)";
    let number = |group, name, c, doc, number| Entry { group, name, c, doc, figure: Figure::Number(number) };
    vec![
        word(
            class,
            "CLASS_EXT",
            if release < (3, 2) { "offsetof(struct RClass, ptr)" } else { "sizeof(struct RClass)" },
            "the address of its `rb_classext_struct`; from 3.2 on, where that begins in the class itself",
            if ((3, 2)..(4, 0)).contains(&release) { 32 } else { 24 },
        ),
        word(
            class,
            "CLASSEXT_CONST_TBL",
            "offsetof(struct rb_classext_struct, const_tbl)",
            "its constants, or null: of each ID a `rb_const_entry_t`",
            match release {
                (3, 1) => 24,
                (3, ..) => 8,
                _ => 32,
            },
        ),
        // Up to 3.2 it is an instance variable.
        word(
            class,
            "CLASSEXT_CLASSPATH",
            if release < (3, 3) { "0" } else { "offsetof(struct rb_classext_struct, classpath)" },
            "its name, or nil; 0 up to 3.2, where that is an instance variable",
            match release {
                (3, 1 | 2) => 0,
                (3, ..) => 120,
                _ => 128,
            },
        ),
        word(
            class,
            "CLASSEXT_ATTACHED",
            if release < (3, 3) {
                "0"
            } else {
                "offsetof(struct rb_classext_struct, as.singleton_class.attached_object)"
            },
            "of a singleton class: its only instance; 0 up to 3.2, where that is an instance variable",
            match release {
                (3, 1 | 2) => 0,
                (3, ..) => 96,
                _ => 112,
            },
        ),
        word(
            class,
            "CLASSEXT_INCLUDER",
            match release {
                (3, 1) => "0",
                (3, ..) => "offsetof(struct rb_classext_struct, includer)",
                _ => "offsetof(struct rb_classext_struct, as.iclass.includer)",
            },
            "of an `ICLASS`: the class that has included the module; 0 for 3.1, where the GC does not mark it",
            match release {
                (3, 1) => 0,
                (3, ..) => 104,
                _ => 112,
            },
        ),
        word(
            class,
            "CLASS_SUPER",
            if release < (3, 3) { "offsetof(struct RClass, super)" } else { "0" },
            "its superclass; 0 from 3.3 on, where that is not needed",
            if release < (3, 3) { 16 } else { 0 },
        ),
        word(
            class,
            "CLASSEXT_IV_TBL",
            if release < (3, 2) { "offsetof(struct rb_classext_struct, iv_tbl)" } else { "0" },
            "its instance variables, a `st_table`, or null; 0 from 3.2 on, where they are elsewhere",
            if release < (3, 2) { 8 } else { 0 },
        ),
        number(
            "rb_iseq_location_t (vm_core.h)",
            "ISEQ_FIRST_LINENO_SHIFT",
            "(sizeof(((rb_iseq_location_t *)0)->first_lineno) == sizeof(VALUE))",
            "where in `first_lineno` the number is: 1 for 3.1, where that is a Ruby Integer",
            usize::from(release < (3, 2)),
        ),
        word(
            "struct rb_vm_struct",
            "VM_SHAPE_LIST",
            if release == (3, 2) { "offsetof(struct rb_vm_struct, shape_list)" } else { "0" },
            "the shapes that classes have too, on x86_64; 0 but for 3.2",
            if release == (3, 2) { 376 } else { 0 },
        ),
        word(
            STRING,
            "STRING_LEN",
            if release < (3, 3) { "offsetof(struct RString, as.heap.len)" } else { "offsetof(struct RString, len)" },
            "its bytes; of an embedded one only from 3.2 on",
            16,
        ),
        number(
            STRING,
            "STRING_EMBEDDED",
            "offsetof(struct RString, as.embed.ary)",
            "the bytes of one that is no `STRING_NOEMBED`",
            if release < (3, 2) { 16 } else { 24 },
        ),
        Entry {
            group: ARRAY,
            name: "ARRAY_EMBED_LEN_MASK",
            c: "RARRAY_EMBED_LEN_MASK",
            doc: "the number of elements of an `ARRAY_EMBED`, in the flags",
            figure: Figure::Bits(if release < (3, 2) { 0x1_8000 } else { 0x3f_8000 }),
        },
        word(
            "struct RHash (internal/hash.h)",
            "HASH_IFNONE",
            "offsetof(struct RHash, ifnone)",
            "its default value or block",
            if release < (3, 3) { 24 } else { 16 },
        ),
        Entry {
            group: "flags of objects (include/ruby/internal/fl_type.h)",
            name: "FL_SINGLETON",
            c: "RUBY_FL_SINGLETON",
            doc: "of a class: it is a singleton class",
            figure: Figure::Bits(if release < (3, 4) { 1 << 12 } else { 1 << 13 }),
        },
    ]
}

/// What `ext/ruby_layout/src/shape.rs` knows of Ruby 3.2.
const SHAPES: &str = "\
_Static_assert(SHAPE_FLAG_SHIFT == 32, \"SHAPE_FLAG_SHIFT\");
_Static_assert(sizeof(struct rb_shape) == 32, \"SHAPE_SIZE\");
_Static_assert(offsetof(struct rb_shape, edge_name) == 8, \"EDGE_NAME\");
_Static_assert(offsetof(struct rb_shape, next_iv_index) == 16, \"NEXT_IV_INDEX\");
_Static_assert(offsetof(struct rb_shape, parent_id) == 28, \"PARENT_ID\");
_Static_assert(INVALID_SHAPE_ID == 0xffffffff, \"INVALID_SHAPE_ID\");
_Static_assert(offsetof(struct rb_classext_struct, iv_ptr) == 0, \"CLASSEXT_IV_PTR\");
_Static_assert(offsetof(struct rb_vm_struct, root_shape) == offsetof(struct rb_vm_struct, shape_list) + 8, \"root\");
";

/// A C program that compiles, in the source tree of a Ruby of that minor, only if the entries are right for it.
pub fn assertions(minor: (u32, u32)) -> String {
    let assertion =
        |entry: &Entry| format!("_Static_assert({} == {}, \"{}\");\n", entry.c, c_literal(entry), entry.name);
    let assertions: String = entries().iter().chain(&entries_of(minor)).map(assertion).collect();
    let headers = ["vm_core.h", "internal/imemo.h", "internal/class.h", "internal/hash.h", "constant.h", "symbol.h"];
    // It includes no headers of its own.
    let sources = ["id_table.c"];
    let includes = headers.iter().chain(&sources).map(|name| format!("#include \"{name}\"\n"));
    let shapes = if minor == (3, 2) { SHAPES } else { "" };
    includes.chain([assertions, shapes.to_owned()]).collect()
}

/// The entry's figure without digit separators, which C lacks.
fn c_literal(entry: &Entry) -> String {
    entry.figure.to_string().replace('_', "")
}
