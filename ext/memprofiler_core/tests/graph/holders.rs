//! Whether the holders of objects are what a programmer would say.

use crate::program::{FINALIZERS, GLOBALS, MACHINE_STACK, Program, VM, constant, ivar, local, phrases};
use memprofiler_core::graph::{Edge, Kind};

#[test]
fn a_cache_in_a_class() {
    let mut program = Program::new();
    let class = program.class("ProductCardCache");
    let cards = program.object("Hash", class, ivar("@cards"));
    program.heap.objects[cards].name.count = Some(6_724);
    for _ in 0..30 {
        let buffer = program.object("OutputBuffer", cards, Edge::Value(None));
        program.strings(1, buffer, &ivar("@text"));
    }
    let holder = program.holder();
    assert_eq!(holder.phrase, "ProductCardCache.@cards → Hash (6,724)");
    assert_eq!(phrases(&holder.chain), ["ProductCardCache", "ProductCardCache.@cards → Hash"]);
    assert_eq!(phrases(&holder.example), ["Hash → values → OutputBuffer", "OutputBuffer.@text → String"]);
    let retained: Vec<u64> = holder.chain.iter().map(|link| link.retained).collect();
    assert_eq!(retained, [61 * 40, 61 * 40]);
    assert_eq!((holder.exclusive, holder.alike, holder.folded), (true, 1, None));
    assert_eq!((holder.samples, holder.objects, holder.bytes), (30, 300.0, 12_000.0));
}

#[test]
fn an_example_of_the_class_with_the_most_bytes() {
    let mut program = Program::new();
    let class = program.class("Cache");
    let cards = program.object("Hash", class, ivar("@cards"));
    program.strings(5, cards, &Edge::Key);
    for _ in 0..6 {
        let buffer = program.object("Buffer", cards, Edge::Value(None));
        program.sample(buffer, 0);
    }
    assert_eq!(phrases(&program.holder().example), ["Hash → values → Buffer"]);
}

#[test]
fn a_constant() {
    let mut program = Program::new();
    let class = program.class("Audit");
    let log = program.object("Array", class, constant("LOG"));
    program.strings(20, log, &Edge::Element);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Audit::LOG (constant, /app/a.rb:2) → Array");
    assert_eq!((holder.chain[1].file.as_deref(), holder.chain[1].line), (Some("/app/a.rb"), Some(2)));
}

#[test]
fn observers_of_a_class_variable() {
    let mut program = Program::new();
    let class = program.class("Bus");
    let app = program.object("App", class, Edge::ClassVariable("@@instance".to_owned()));
    let bus = program.object("Bus", app, ivar("@bus"));
    let observers = program.object("Array", bus, ivar("@observers"));
    for _ in 0..20 {
        let listener = program.object("Listener", observers, Edge::Element);
        program.strings(1, listener, &ivar("@payload"));
    }
    let holder = program.holder();
    assert_eq!(holder.phrase, "Bus.@@instance → App.@bus → Bus.@observers → Array");
    assert_eq!(phrases(&holder.example), ["Array → elements → Listener", "Listener.@payload → String"]);
}

#[test]
fn a_global_variable() {
    let mut program = Program::new();
    let recent = program.object("Array", GLOBALS, Edge::Global("$recent".to_owned()));
    program.strings(20, recent, &Edge::Element);
    let holder = program.holder();
    assert_eq!(holder.phrase, "$recent → Array");
    assert_eq!(phrases(&holder.chain), ["global variables", "$recent → Array"]);
}

#[test]
fn a_thread_local() {
    let mut program = Program::new();
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"puma 003\"", VM, Edge::Unknown);
    let cache = program.object("Hash", thread, Edge::ThreadLocal("cache".to_owned()));
    program.strings(20, cache, &Edge::Value(None));
    assert_eq!(program.holder().phrase, "Thread \"puma 003\" local cache → Hash");
}

#[test]
fn threads_that_have_ended() {
    let mut program = Program::new();
    let main = program.of_kind(Kind::Thread, "Thread", "Thread \"main\"", VM, Edge::Unknown);
    let all = program.object("Array", main, local("threads"));
    for number in 0..3 {
        let name = format!("Thread \"batch {number}\" (ended)");
        let thread = program.of_kind(Kind::EndedThread, "Thread", &name, all, Edge::Element);
        let rows = program.object("Array", thread, Edge::ThreadLocal("rows".to_owned()));
        program.strings(20, rows, &Edge::Element);
    }
    let (holder, main) = (program.holder(), "Thread \"main\" local variable threads → Array → elements");
    assert_eq!(holder.phrase, format!("{main} → Thread \"batch 0\" (ended) local rows → Array"));
    assert_eq!(holder.alike, 3);
}

#[test]
fn a_thread_variable() {
    let mut program = Program::new();
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread", VM, Edge::Unknown);
    let variables = program.of_kind(Kind::Plain, "Hash", "(thread variables)", thread, Edge::Inside);
    let cache = program.object("Hash", variables, Edge::ThreadVariable("cache".to_owned()));
    program.strings(20, cache, &Edge::Value(None));
    assert_eq!(program.holder().phrase, "Thread variable cache → Hash");
}

#[test]
fn a_local_of_a_blocked_thread() {
    let mut program = Program::new();
    let thread = program.of_kind(Kind::Thread, "Thread", "Thread \"blocked\"", VM, Edge::Unknown);
    let rows = program.object("Array", thread, local("rows"));
    program.heap.refer(MACHINE_STACK, rows, Edge::Unknown);
    program.strings(20, rows, &Edge::Element);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Thread \"blocked\" local variable rows → Array");
    assert!(!holder.exclusive);
    assert_eq!(holder.also, ["machine stack → Array"]);
}

#[test]
fn a_block_that_captures() {
    let mut program = Program::new();
    let hooks = program.class("Hooks");
    let list = program.object("Array", hooks, constant("LIST"));
    let block = program.of_kind(Kind::Plain, "Proc", "block at app/foo.rb:7", list, Edge::Element);
    let environment = program.internal(Kind::Plain, "(locals)", block, Edge::Inside);
    let rows = program.object("Array", environment, local("rows"));
    program.strings(20, rows, &Edge::Element);
    let holder = program.holder();
    let expected =
        "Hooks::LIST (constant, /app/a.rb:2) → Array → elements → block at app/foo.rb:7 captures rows → Array";
    assert_eq!(holder.phrase, expected);
    assert_eq!(holder.folded.as_deref(), Some("1 internal step"));
}

#[test]
fn a_method_made_of_a_block() {
    let mut program = Program::new();
    let class = program.class("Dyn");
    let singleton = program.of_kind(Kind::Plain, "Class", "singleton class of Dyn", class, Edge::Singleton);
    for (holder, name) in [(class, "size"), (singleton, "all")] {
        let entry = program.internal(Kind::Plain, "method", holder, Edge::Method(name.to_owned()));
        let block = program.of_kind(Kind::Plain, "Proc", "block at a.rb:5", entry, Edge::Unknown);
        let rows = program.object("Array", block, local("data"));
        program.strings(20, rows, &Edge::Element);
    }
    let told: Vec<String> = program.holders().into_iter().map(|holder| holder.phrase).collect();
    assert_eq!(
        told,
        ["Dyn#size → block at a.rb:5 captures data → Array", "Dyn.all → block at a.rb:5 captures data → Array"]
    );
}

#[test]
fn a_finalizer() {
    let mut program = Program::new();
    let list = program.internal(Kind::Plain, "(finalizers)", FINALIZERS, Edge::Finalizer);
    let block = program.of_kind(Kind::Plain, "Proc", "block at a.rb:5", list, Edge::Finalizer);
    let rows = program.object("Array", block, local("data"));
    program.strings(20, rows, &Edge::Element);
    assert_eq!(program.holder().phrase, "finalizer → block at a.rb:5 captures data → Array");
}

/// An object with `@next` and `@value`, again and again. The values are sampled.
fn list(length: usize) -> Program {
    let mut program = Program::new();
    let class = program.class("Chain");
    let (mut from, mut edge) = (class, ivar("@head"));
    for _ in 0..length {
        let node = program.object("Node", from, edge);
        program.strings(1, node, &ivar("@value"));
        (from, edge) = (node, ivar("@next"));
    }
    program
}

#[test]
fn a_list() {
    for length in [20, 20_000] {
        let mut program = list(length);
        for last_first in [false, true] {
            if last_first {
                program.heap.objects.iter_mut().for_each(|object| object.edges.reverse());
            }
            let holder = program.holder();
            assert_eq!(holder.phrase, "Chain.@head → Node");
            assert_eq!((holder.samples, holder.chain[1].retained), (length as u64, 80 * length as u64));
            assert!(holder.example.len() <= 2, "{:?}", phrases(&holder.example));
        }
    }
}

#[test]
fn the_path_to_the_end_of_a_list_is_short() {
    let mut program = list(20_000);
    program.samples.drain(..19_999);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Chain.@head → Node");
    assert_eq!(phrases(&holder.example), ["Node.@next → Node", "Node.@value → String"]);
    assert_eq!(program.answer().paths.nodes.len(), 4, "the only path");
}

#[test]
fn a_chain_through_a_list_leaves_out_what_is_repeated() {
    let mut program = list(1_000);
    program.samples.clear();
    let last = program.heap.objects.iter().rposition(|object| object.name.text == "Node").unwrap();
    let array = program.object("Array", last, ivar("@all"));
    for string in program.strings(20, array, &Edge::Element) {
        program.heap.refer(MACHINE_STACK, string, Edge::Unknown);
    }
    let holder = program.holder();
    assert_eq!(holder.phrase, "Chain.@head → Node.@next → Node.@all → Array");
    assert_eq!(holder.folded.as_deref(), Some("998 repeated steps"));
    assert_eq!(holder.chain[3].retained, 40);
}

#[test]
fn a_list_of_two_kinds_of_objects() {
    let mut program = Program::new();
    let class = program.class("Chain");
    let mut promise = program.object("Promise", class, ivar("@first"));
    for _ in 0..20_000 {
        program.strings(1, promise, &ivar("@value"));
        let callback = program.object("Callback", promise, ivar("@callback"));
        promise = program.object("Promise", callback, ivar("@promise"));
    }
    assert_eq!(program.holder().phrase, "Chain.@first → Promise");
    program.samples.drain(..19_999);
    let holder = program.holder();
    let expected = ["Promise.@callback → Callback", "Callback.@promise → Promise", "Promise.@value → String"];
    assert_eq!((&*holder.phrase, phrases(&holder.example)), ("Chain.@first → Promise", expected.to_vec()));
}

/// Objects each of which refers to the next, without a pattern in their classes.
fn various(length: u32) -> Program {
    let mut program = Program::new();
    let (mut from, mut edge) = (program.class("Log"), ivar("@last"));
    let mut random = 1_u32;
    for _ in 0..length {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let class = ["Login", "Order", "Payment"][(random >> 16) as usize % 3];
        let event = program.object(class, from, edge);
        program.strings(1, event, &ivar("@text"));
        (from, edge) = (event, ivar("@previous"));
    }
    program
}

#[test]
fn an_answer_about_a_long_chain_of_various_objects_is_small() {
    let answer = various(1_000).answer();
    assert!(answer.paths.nodes.len() < 1_000, "{}", answer.paths.nodes.len());
    assert!(serde_json::to_vec(&answer).unwrap().len() < 2_000_000);
}

#[test]
fn a_long_chain_says_how_much_longer_it_is() {
    let mut program = various(1_000);
    let last = program.heap.objects.iter().rposition(|object| object.name.text != "String").unwrap();
    let array = program.object("Array", last, ivar("@all"));
    for _ in 0..20 {
        let string = program.object("String", array, Edge::Element);
        program.heap.refer(MACHINE_STACK, string, Edge::Unknown);
        program.sample(string, 1);
    }
    let answer = program.answer();
    let site = answer.sites.iter().find(|site| site.name == "a.rb:2").unwrap();
    let holder = &site.holders[0];
    assert_eq!(holder.chain.len(), 256);
    let folded = holder.folded.as_deref().unwrap_or_default();
    let steps = |kind: &str| {
        let part = folded.split(", ").find(|part| part.ends_with(&format!("{kind} steps")));
        part.and_then(|part| part.split(' ').next()?.parse::<usize>().ok()).unwrap_or(0)
    };
    // The class, the events and the array.
    assert_eq!(256 + steps("more") + steps("repeated"), 1_002, "{folded}");
    assert!(steps("more") > 300, "{folded}");
}

#[test]
fn literals_are_held_by_the_code_of_their_gem() {
    let mut program = Program::new();
    for number in 0..20 {
        let class = program.class(&format!("Gem::Class{}", number / 10));
        let entry = program.internal(Kind::Plain, "method", class, Edge::Method("call".to_owned()));
        let code = program.internal(Kind::Code, &format!("(code {number})"), entry, Edge::Unknown);
        program.heap.objects[code].name.file = Some("/usr/lib/ruby/gems/3.1.0/gems/rack-2.2.4/lib/a.rb".to_owned());
        program.strings(1, code, &Edge::Unknown);
        program.heap.refer(VM, code, Edge::Unknown);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.alike), ("code of rack", 20));
    assert_eq!(holder.folded.as_deref(), Some("2 steps of boot code in rack"));
    assert_eq!(phrases(&holder.example), ["code of rack → String"]);
    assert!(holder.exclusive, "that others refer to the code says nothing");
}

/// A method of the program that is compiled to code, which is the code's name.
fn method(program: &mut Program, class: usize, name: &str, line: i64) -> usize {
    let entry = program.internal(Kind::Plain, "method", class, Edge::Method(name.to_owned()));
    let code = program.internal(Kind::Code, &format!("(code of {name} at a.rb:{line})"), entry, Edge::Unknown);
    let name = &mut program.heap.objects[code].name;
    (name.file, name.line) = (Some("/srv/a.rb".to_owned()), Some(line));
    code
}

#[test]
fn methods_that_accumulate_are_held_by_their_class() {
    let mut program = Program::new();
    let class = program.class("Templates");
    for number in 0..50 {
        let code = method(&mut program, class, &format!("render_{number}"), 1);
        program.sample(code, 0);
        let block = program.internal(Kind::Code, "(code of block at a.rb:1)", code, Edge::Unknown);
        program.sample(block, 0);
        program.strings(1, block, &Edge::Unknown);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.alike, holder.folded), ("Templates", 1, None));
    assert_eq!(phrases(&holder.example)[0], "Templates#render_0 → code of render_0 at a.rb:1");
}

#[test]
fn code_of_blocks_in_a_hash_is_held_by_that() {
    let mut program = Program::new();
    let class = program.class("Flags");
    let all = program.object("Hash", class, constant("ALL"));
    for number in 0..50 {
        let block = program.of_kind(Kind::Plain, "Proc", "block at (eval):1", all, Edge::Value(None));
        let code = program.internal(Kind::Code, &format!("(code of add_{number} at (eval):1)"), block, Edge::Unknown);
        program.sample(code, 0);
        program.strings(1, code, &Edge::Unknown);
    }
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.alike), ("Flags::ALL (constant, /app/a.rb:2) → Hash", 1));
}

#[test]
fn methods_that_others_hold_too_are_alike() {
    for made_of_blocks in [false, true] {
        let mut program = Program::new();
        let class = program.class("Templates");
        for number in 0..5 {
            let name = format!("render_{number}");
            let from = if made_of_blocks {
                let entry = program.internal(Kind::Plain, "method", class, Edge::Method(name));
                program.of_kind(Kind::Plain, "Proc", "block at a.rb:1", entry, Edge::Unknown)
            } else {
                method(&mut program, class, &name, 1)
            };
            program.heap.refer(VM, from, Edge::Unknown);
            program.strings(2, from, &Edge::Unknown);
        }
        let holder = program.holder();
        let told = if made_of_blocks { "block at a.rb:1" } else { "code of render_0 at a.rb:1" };
        assert_eq!((holder.phrase, holder.alike), (format!("Templates#render_0 → {told}"), 5));
    }
}

#[test]
fn code_of_the_program_is_told_by_its_name() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let code = method(&mut program, class, "fetch", 7);
    let cache = program.internal(Kind::Cache, "cache", code, Edge::Unknown);
    program.strings(3, code, &Edge::Unknown);
    program.strings(3, cache, &Edge::Unknown);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Foo#fetch → code of fetch at a.rb:7");
    assert_eq!(holder.folded.as_deref(), Some("1 internal step"));
}

#[test]
fn shares_of_several_holders() {
    let mut program = Program::new();
    for (name, count) in [("Few", 10), ("Many", 60), ("Some", 30)] {
        let class = program.class(name);
        let list = program.object("Array", class, ivar("@list"));
        program.strings(count, list, &Edge::Element);
    }
    let told: Vec<(String, f64)> = program.holders().into_iter().map(|holder| (holder.phrase, holder.share)).collect();
    let expected = [("Many.@list → Array", 0.6), ("Some.@list → Array", 0.3), ("Few.@list → Array", 0.1)];
    assert_eq!(told, expected.map(|(phrase, share)| (phrase.to_owned(), share)));
}

#[test]
fn one_large_object() {
    let mut program = Program::new();
    let class = program.class("Foo");
    program.strings(1, class, &ivar("@buffer"));
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.example.len(), holder.chain[1].retained), ("Foo.@buffer → String", 0, 40));
}

#[test]
fn one_object_in_an_array() {
    let mut program = Program::new();
    let class = program.class("Foo");
    let array = program.object("Array", class, ivar("@all"));
    program.strings(1, array, &Edge::Element);
    let holder = program.holder();
    assert_eq!(holder.phrase, "Foo.@all → Array");
    assert_eq!(phrases(&holder.example), ["Array → elements → String"]);
}

#[test]
fn an_object_of_the_machine_stack() {
    let mut program = Program::new();
    program.strings(3, MACHINE_STACK, &Edge::Unknown);
    let holder = program.holder();
    assert_eq!((&*holder.phrase, holder.chain[0].kind), ("machine stack", Kind::Category));
}
