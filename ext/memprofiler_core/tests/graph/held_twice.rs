//! Whether objects that several others hold are told as that.

use crate::program::{MACHINE_STACK, Program, VM, constant, ivar, local, phrases};
use memprofiler_core::graph::{Edge, Kind};

#[test]
fn by_two_classes() {
    let mut program = Program::new();
    let (registry, recent) = (program.class("Registry"), program.class("Recent"));
    let all = program.object("Hash", registry, ivar("@all"));
    let list = program.object("Array", recent, constant("LIST"));
    for string in program.strings(20, all, &Edge::Value(None)) {
        program.heap.refer(list, string, Edge::Element);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.alike), ("Registry.@all → Hash", 1));
    assert_eq!(holder.also, ["Recent::LIST (constant, /app/a.rb:2) → Array → elements → String"]);
    assert_eq!((holder.exclusive, holder.chain[1].retained), (false, 40));
    assert_eq!(phrases(&holder.example), ["Hash → values → String"]);
}

#[test]
fn by_two_variables_of_one_object() {
    let mut program = Program::new();
    let class = program.class("Bus");
    let bus = program.object("Bus", class, Edge::ClassVariable("@@bus".to_owned()));
    let one = program.object("Array", bus, ivar("@one"));
    let other = program.object("Hash", bus, ivar("@other"));
    for string in program.strings(20, one, &Edge::Element) {
        program.heap.refer(other, string, Edge::Value(None));
    }
    let holder = program.holder();
    assert_eq!(holder.phrase, "Bus.@@bus → Bus");
    assert_eq!((holder.exclusive, holder.chain[1].retained), (true, 23 * 40));
    assert_eq!(phrases(&holder.example), ["Bus.@one → Array", "Array → elements → String"]);
    assert_eq!(holder.also, ["Bus.@@bus → Bus.@other → Hash → values → String"]);
}

#[test]
fn a_container_held_twice() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", VM, Edge::Unknown);
    program.heap.refer(thread, hash, local("all"));
    for string in program.strings(20, hash, &Edge::Value(None)) {
        // Objects that refer to their container hold nothing else.
        program.heap.refer(string, hash, ivar("@owner"));
    }
    let cache = program.internal(Kind::Cache, "cache", VM, Edge::Unknown);
    program.heap.refer(cache, hash, Edge::Unknown);
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.exclusive), ("Cache.@all → Hash", false));
    assert_eq!(holder.also, ["Thread \"a\" local variable all → Hash"]);
    assert_eq!(holder.chain.iter().map(|link| link.retained).collect::<Vec<_>>(), [0, 21 * 40]);
}

/// A JIT compiler puts the values of constants into the code.
#[test]
fn a_constant_that_compiled_code_has_cached() {
    let mut program = Program::new();
    let class = program.class("Shop");
    let hash = program.object("Hash", class, constant("CACHE"));
    let code = program.internal(Kind::Code, "code of get", VM, Edge::Unknown);
    program.heap.refer(code, hash, Edge::Unknown);
    program.strings(20, hash, &Edge::Value(None));
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.exclusive), ("Shop::CACHE (constant, /app/a.rb:2) → Hash", true));
    assert_eq!((holder.also.len(), holder.chain[1].retained), (0, 21 * 40));
}

#[test]
fn a_container_of_blocks_with_code() {
    let mut program = Program::new();
    let (flags, recent) = (program.class("Flags"), program.class("Recent"));
    let all = program.object("Hash", flags, ivar("@all"));
    program.heap.refer(recent, all, ivar("@flags"));
    for _ in 0..20 {
        let block = program.of_kind(Kind::Plain, "Proc", "block at a.rb:1", all, Edge::Value(None));
        let code = program.internal(Kind::Code, "(code of add at a.rb:1)", block, Edge::Unknown);
        program.strings(1, code, &Edge::Unknown);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.exclusive), ("Flags.@all → Hash", false));
    assert_eq!(holder.also, ["Recent.@flags → Hash"]);
}

#[test]
fn one_of_many_that_a_frame_holds_too_is_among_the_others() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    let strings = program.strings(20, hash, &Edge::Value(None));
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", VM, Edge::Unknown);
    program.heap.refer(thread, strings[0], local("text"));
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.samples, holder.alike), ("Cache.@all → Hash", 20, 1));
    assert!(holder.exclusive && holder.also.is_empty(), "an example that nothing else holds");
}

#[test]
fn most_of_them() {
    let mut program = Program::new();
    let (registry, recent) = (program.class("Registry"), program.class("Recent"));
    let all = program.object("Hash", registry, ivar("@all"));
    let list = program.object("Array", recent, ivar("@list"));
    for string in program.strings(20, all, &Edge::Value(None)).split_off(5) {
        program.heap.refer(list, string, Edge::Element);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.exclusive), ("Registry.@all → Hash", false));
    assert_eq!(holder.also, ["Recent.@list → Array → elements → String"]);
}

#[test]
fn by_something_behind_many_that_they_hold_themselves() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    for string in program.strings(100, hash, &Edge::Value(None)) {
        program.heap.refer(string, hash, ivar("@owner"));
    }
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", VM, Edge::Unknown);
    program.heap.refer(thread, hash, local("all"));
    assert_eq!(program.holder().also, ["Thread \"a\" local variable all → Hash"]);
}

#[test]
fn by_caches_too() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    program.strings(20, hash, &Edge::Value(None));
    let code = program.internal(Kind::Code, "code", VM, Edge::Unknown);
    let cache = program.internal(Kind::Cache, "cache", code, Edge::Unknown);
    program.heap.refer(cache, hash, Edge::Unknown);
    let holder = program.holder();
    assert!(holder.exclusive && holder.also.is_empty());
}

#[test]
fn by_a_stack_that_does_not_count() {
    let mut program = Program::new();
    program.heap.objects[MACHINE_STACK].kind = Kind::Cache;
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    program.strings(20, hash, &Edge::Value(None));
    program.heap.refer(MACHINE_STACK, hash, Edge::Unknown);
    let holder = program.holder();
    assert_eq!((holder.exclusive, holder.also.len(), holder.chain[1].retained), (true, 0, 21 * 40));
    program.strings(10, MACHINE_STACK, &Edge::Unknown);
    assert_eq!(program.holders()[1].phrase, "machine stack");
}

#[test]
fn by_many_is_told_for_three() {
    let mut program = Program::new();
    let names = ["A", "B", "C", "D", "E", "F"];
    let arrays = names.map(|name| {
        let class = program.class(name);
        program.object("Array", class, ivar("@all"))
    });
    for string in program.strings(20, arrays[0], &Edge::Element) {
        arrays[1..].iter().for_each(|&array| program.heap.refer(array, string, Edge::Element));
    }
    let expected = ["B", "C", "D"].map(|name| format!("{name}.@all → Array → elements → String"));
    assert_eq!(program.holder().also, expected);
}

#[test]
fn as_well_as_what_holds_them() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    let (one, other) = (program.class("One"), program.class("Other"));
    program.heap.refer(one, hash, ivar("@cache"));
    let list = program.object("Array", other, ivar("@list"));
    for string in program.strings(20, hash, &Edge::Value(None)) {
        program.heap.refer(list, string, Edge::Element);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.exclusive), ("Cache.@all → Hash", false));
    assert_eq!(holder.also, ["Other.@list → Array → elements → String"], "what is nearest to the objects");
}

#[test]
fn by_what_they_hold_themselves_is_not_told() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let hash = program.object("Hash", class, ivar("@all"));
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", VM, Edge::Unknown);
    program.heap.refer(thread, hash, local("all"));
    program.strings(20, hash, &Edge::Value(None));
    // A class that only the Hash knows, and an object that is on the machine stack, too.
    let list = program.object("Array", hash, Edge::Value(None));
    let known = program.of_kind(Kind::Anchor, "Class", "Known", list, Edge::Element);
    program.heap.refer(known, hash, ivar("@cache"));
    let entry = program.object("Entry", hash, Edge::Value(None));
    program.heap.refer(MACHINE_STACK, entry, Edge::Unknown);
    program.heap.refer(entry, hash, ivar("@owner"));
    assert_eq!(program.holder().also, ["Thread \"a\" local variable all → Hash"]);
}

#[test]
fn by_a_class_is_told_before_a_thread_and_a_stack() {
    let mut program = Program::new();
    let cache = program.class("Cache");
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"a\"", VM, Edge::Unknown);
    let hash = program.object("Hash", cache, ivar("@all"));
    let last = program.class("Last");
    for from in [MACHINE_STACK, thread, last] {
        program.heap.refer(from, hash, ivar("@all"));
    }
    program.strings(20, hash, &Edge::Value(None));
    let also = ["Last.@all → Hash", "Thread \"a\".@all → Hash", "machine stack → Hash"];
    assert_eq!(program.holder().also, also);
}
