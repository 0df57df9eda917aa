//! Tables of IDs: constants, and the variables of fibers.

use super::super::frames::LAYOUT;
use super::super::layout;
use super::super::object::{is_heap, read};
use super::text;
use rb_sys::VALUE;

/// The items of a `struct rb_id_table`: the serial number of the ID, and the value.
///
/// # Safety
/// `table` must be null or a table that nobody changes as long as the items are used.
unsafe fn items(table: *const u8) -> impl Iterator<Item = (u32, VALUE)> {
    let (mut first, mut count) = (std::ptr::null(), 0);
    if !table.is_null() {
        // SAFETY: a table has these two fields at the layout's offsets.
        unsafe {
            first = read(table, layout::ID_TABLE_ITEMS) as *const u8;
            count = table.add(layout::ID_TABLE_CAPA).cast::<u32>().read() as usize;
        }
    }
    if first.is_null() {
        count = 0;
    }
    (0..count).filter_map(move |index| {
        // SAFETY: the table has as many items, one after another, with these fields at the layout's offsets.
        unsafe {
            let item = first.add(index * layout::ID_ITEM_SIZE);
            let key = item.add(layout::ID_ITEM_KEY).cast::<u32>().read();
            (key != 0).then(|| (key, read(item, layout::ID_ITEM_VAL) as VALUE))
        }
    })
}

/// A constant.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    serial: u32,
    /// What it refers to.
    pub value: VALUE,
    entry: *const u8,
}

impl Constant {
    /// Its name.
    ///
    /// # Safety
    /// The GVL must be held.
    pub unsafe fn name(&self) -> Option<String> {
        // SAFETY: as required of the caller.
        unsafe { text::id_of_serial(self.serial) }
    }

    /// The file and line that set it last; None for C code.
    ///
    /// # Safety
    /// The GVL must be held, and the constant not have changed.
    pub unsafe fn place(&self) -> Option<(String, i64)> {
        // SAFETY: the entry has these fields at the layout's offsets.
        let (file, line) = unsafe {
            let line = self.entry.add(layout::CONST_LINE).cast::<i32>().read();
            (text::string(read(self.entry, layout::CONST_FILE) as VALUE), line)
        };
        file.filter(|file| !file.is_empty() && line > 0).map(|file| (file, line.into()))
    }
}

/// The constants of a class or module, private ones included, that refer to an object on the heap. Of a class that the
/// boxes of Ruby 4.0 see differently, those of the main program.
///
/// # Safety
/// The GVL must be held as long as the constants are used; `class` must be a live class or module.
pub unsafe fn constants(class: VALUE) -> impl Iterator<Item = Constant> {
    let table = LAYOUT.map_or(std::ptr::null(), |layout| {
        // SAFETY: a class has its extension at the layout's offset, which has its table at the layout's offset.
        unsafe {
            let class = class as *const u8;
            let extension = if cfg!(ruby_gte_3_2) {
                class.add(layout.class_ext)
            } else {
                read(class, layout.class_ext) as *const u8
            };
            if extension.is_null() { extension } else { read(extension, layout.classext_const_tbl) as *const u8 }
        }
    });
    // SAFETY: nobody changes it while the GVL is held. Each value is an entry, which has its value at the layout's
    // offset.
    unsafe {
        items(table).filter_map(|(serial, entry)| {
            let entry = entry as *const u8;
            let value = read(entry, layout::CONST_VALUE) as VALUE;
            is_heap(value).then_some(Constant { serial, value, entry })
        })
    }
}

/// The fiber-local variables of an execution context: the name's serial number, and the value.
///
/// # Safety
/// The GVL must be held as long as they are used; `context` must be an execution context.
pub unsafe fn fiber_locals(context: *const u8) -> impl Iterator<Item = (u32, VALUE)> {
    // SAFETY: an execution context has its table, or null, at the layout's offset.
    unsafe {
        items(LAYOUT.map_or(std::ptr::null(), |layout| read(context, layout.ec_local_storage) as *const u8))
            .filter(|&(_, value)| is_heap(value))
    }
}
