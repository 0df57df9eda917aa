//! The characters of Strings and Symbols. Bytes that are not UTF-8 are replaced, whatever the encoding, so that nobody's
//! name is an error.

use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{RString, Symbol, Value};

/// Those of a String.
pub fn string(string: RString) -> String {
    // SAFETY: nothing runs between borrowing the bytes and copying them.
    String::from_utf8_lossy(unsafe { string.as_slice() }).into_owned()
}

/// Those of a Symbol.
pub fn symbol(symbol: Symbol) -> String {
    // SAFETY: a live Symbol, of which the function returns the name, a String that the VM keeps.
    let name = RString::from_value(unsafe { Value::from_raw(rb_sys::rb_sym2str(symbol.as_raw())) });
    name.map(self::string).unwrap_or_default()
}
