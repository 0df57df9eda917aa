//! The characters of Strings and Symbols. What is no UTF-8 is replaced, so that nobody's name is an error.

use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{RString, Symbol, Value};

/// Those of a String, whatever its encoding. Does not allocate on Ruby's heap.
pub fn string(string: RString) -> String {
    // SAFETY: nothing runs between borrowing the bytes and copying them.
    String::from_utf8_lossy(unsafe { string.as_slice() }).into_owned()
}

/// Those of a String, converted from another encoding where that is possible. May allocate on Ruby's heap.
pub fn converted(string: RString) -> String {
    string.to_string().unwrap_or_else(|_| self::string(string))
}

/// Those of a Symbol, as [`converted`].
pub fn symbol(symbol: Symbol) -> String {
    // SAFETY: a live Symbol, of which the function returns the name, a String that the VM keeps.
    let name = RString::from_value(unsafe { Value::from_raw(rb_sys::rb_sym2str(symbol.as_raw())) });
    name.map(converted).unwrap_or_default()
}
