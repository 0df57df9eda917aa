//! Whether a JIT compiles the program: code that it has compiled leaves it at an interrupt, and goes on in the
//! interpreter until its method returns.

use magnus::{Module, RClass, RModule, Ruby, value::ReprValue};

/// Those that programs can switch on at any time.
const JITS: [&str; 2] = ["YJIT", "ZJIT"];

/// Whether one is on. A VM that does not say so has none. Makes no objects, which could be
/// sampled, but perhaps the VM's caches of the calls.
pub fn is_on(ruby: &Ruby) -> bool {
    let Ok(vm) = ruby.class_object().const_get::<_, RClass>("RubyVM") else { return false };
    JITS.iter().any(|&name| {
        // Not a program's own constant.
        let built_in = vm.funcall("const_defined?", (ruby.to_symbol(name), false)).unwrap_or(false);
        let jit = built_in.then(|| vm.const_get::<_, RModule>(name).ok()).flatten();
        jit.is_some_and(|jit| jit.funcall("enabled?", ()).unwrap_or(false))
    })
}
