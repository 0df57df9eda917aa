//! x
use magnus as _;
use rb_sys as _;
