# frozen_string_literal: true

require "etc"
require_relative "../support/holders"

# Walks the heap of a program with every kind of holder, in process, and says how each object is held.
RSpec.describe "the walk over the heap", :faults do
  include Holders

  before { skip "needs a known layout" unless %w[3.1 3.2 3.3 3.4 4.0].include?(RUBY_VERSION[/\d+\.\d+/]) }

  describe "names" do
    it "a constant, with the place that set it" do
      expect(path("ByConstant")).to eq(["Audit", constant("LOG"), "Array (1)", "Element", "Kept::ByConstant"])
    end

    it "a private constant, and the key of a Hash if it is a Symbol" do
      expect(path("ByPrivateConstant"))
        .to eq(["Audit", constant("HIDDEN"), "Hash (1)", 'Value(Some("entry"))', "Kept::ByPrivateConstant"])
    end

    it "no other key of a Hash, and an instance variable of a class" do
      expect(path("ByClassVariable"))
        .to eq(["Shop", 'InstanceVariable("@cards")', "Hash (1)", "Value(None)", "Kept::ByClassVariable"])
    end

    it "a class variable" do
      expect(path("ByVariableOfTheHierarchy"))
        .to eq(["Shop", 'ClassVariable("@@all")', "Array (1)", "Element", "Kept::ByVariableOfTheHierarchy"])
    end

    it "a singleton class" do
      expect(path("BySingletonClass"))
        .to eq(["Shop", "Singleton", "singleton class of Shop", 'InstanceVariable("@of_singleton")',
                "Kept::BySingletonClass"])
    end

    it "an instance variable" do
      expect(path("ByInstanceVariable"))
        .to eq(from("ITEM", "Shop", 'InstanceVariable("@item")', "Kept::ByInstanceVariable"))
    end

    it "an instance variable of what is no plain object" do
      expect(path("OnString")).to eq(from("TEXT", "String", 'InstanceVariable("@note")', "Kept::OnString"))
    end

    it "the value of a Symbol" do
      expect(path("BySymbolKey")).to eq(from("BY_SYMBOL", "Hash (1)", 'Value(Some("card"))', "Kept::BySymbolKey"))
    end

    it "a key" do
      expect(path("AsKey")).to eq(from("KEYS", "Hash (1)", "Key", "Kept::AsKey"))
    end

    it "an element of a Set, which has a Hash up to Ruby 3.4" do
      inside = RUBY_VERSION < "4.0" ? ["Set", 'InstanceVariable("@hash")', "Hash (1)", "Key"] : ["Set (1)", "Element"]
      expect(path("InSet")).to eq(from("SET", *inside, "Kept::InSet"))
    end

    it "a Hash's default value" do
      expect(path("ByDefault")).to eq(from("DEFAULT", "Hash (0)", "Default", "Kept::ByDefault"))
    end

    it "a Hash's default block, and what it captures" do
      place = "Hash.new { |_hash"
      expect(path("ByDefaultBlock"))
        .to eq(from("DEFAULT_BLOCK", "Hash (0)", "Default", "block at #{at(place)}",
                    *captured("kept", "block in <top (required)>", place), "Kept::ByDefaultBlock"))
    end

    it "a member of a Struct" do
      expect(path("ByMember")).to eq(from("SALE", "Shop::Sale", 'Member("note")', "Kept::ByMember"))
    end

    it "a member of an instance of a Struct's anonymous subclass" do
      expect(path("ByMemberOfSubclass"))
        .to eq(from("SUBSALE", "anonymous class (< Shop::Sale)", 'Member("price")', "Kept::ByMemberOfSubclass"))
    end

    it "an element of a list of 20,000" do
      expect(path("InList")).to eq(from("LIST", "Array (20000)", "Element", "Kept::InList"))
    end

    it "an element of an Array that shares its elements with another one" do
      expect(path("InSharedArray"))
        .to match(from("SHARED", "Array (2)", "Element", /\AArray \((101|51)\)\z/,
                       *(["Inside", /\A\(ARRAY\)/] if path("InSharedArray").include?("Inside")), "Element",
                       "Kept::InSharedArray"))
    end

    it "a global variable" do
      expect(path("ByGlobal")).to eq(["(global_tbl)", 'Global("$recent")', "Array (1)", "Element", "Kept::ByGlobal"])
    end

    it "a variable that a block has captured" do
      expect(path("ByBlock"))
        .to eq(from("BLOCK", "block at #{at("-> { rows }")}",
                    *captured("rows", "captured_by_block", "def captured_by_block"), "Array (1)", "Element",
                    "Kept::ByBlock"))
    end

    it "a variable of the method around a block in a block" do
      inner = "[1].map { |inner|"
      expect(path("ByOuterBlock"))
        .to eq(from("BLOCKS", "Array (1)", "Element", "block at #{at(inner)}", "Unknown",
                    "(locals of block in captured_by_outer_block at #{at(inner)})",
                    *captured("outer", "captured_by_outer_block", "def captured_by_outer_block"), "Kept::ByOuterBlock"))
    end

    it "a variable of a Binding" do
      expect(path("ByBinding")[..3]).to eq(from("BINDING", "Binding", "Unknown"))
      expect(path("ByBinding")[-2..]).to match([/\ALocal\("(bound|same)"\)\z/, "Kept::ByBinding"])
    end

    it "what the block of a define_method captures" do
      expect(path("ByDefinedMethod"))
        .to eq(["Shop", 'Method("dynamic")', "method Shop#dynamic", "Unknown", "block at #{at("define_method")}",
                *captured("defined", "captured_by_method", "def captured_by_method"), "Kept::ByDefinedMethod"])
    end

    it "the receiver of a Method" do
      expect(path("ByMethodObject"))
        .to eq(from("METHOD", "Method Kept::ByMethodObject#run", "Receiver", "Kept::ByMethodObject"))
    end

    it "an observer" do
      expect(path("ByObservers"))
        .to eq(from("SUBJECT", "Kept::Subject", 'InstanceVariable("@observer_peers")', "Hash (1)", "Key",
                    "Kept::ByObservers"))
    end

    it "what an Enumerator enumerates" do
      expect(path("EnumeratedObject"))
        .to eq(from("EACH", "Enumerator", "Inside", "Array (1)", "Element", "Kept::EnumeratedObject"))
    end
  end

  describe "names of a thread" do
    let(:thread) { 'Thread "puma 003"' }

    it "a local variable of a method that has called others" do
      expect(path("ByLocal"))
        .to eq([thread, local("cache", "work", "def work"), "Hash (1)", 'Value(Some("key"))', "Kept::ByLocal"])
    end

    it "a parameter of a block" do
      expect(path("ByBlockParameter"))
        .to eq([thread, local("item", "block in work", "Kept::ByBlockParameter"), "Kept::ByBlockParameter"])
    end

    it "a keyword" do
      expect(path("ByKeyword")).to eq([thread, local("named", "park", "def park"), "Kept::ByKeyword"])
    end

    it "a parameter of a method that forwards the others" do
      expect(path("ByForwarded")).to eq([thread, local("first", "forward", "def forward"), "Kept::ByForwarded"])
    end

    it "a variable by Thread#[]" do
      expect(path("ByThreadLocal")).to eq([thread, 'ThreadLocal("fiber_local")', "Kept::ByThreadLocal"])
    end

    it "a thread variable" do
      expect(path("ByThreadVariable"))
        .to eq([thread, "Inside", "(thread variables)", 'ThreadVariable("thread_local")', "Kept::ByThreadVariable"])
    end

    it "a local variable that a block has captured; without a name, the thread by its block" do
      expect(path("ByCapturedLocal"))
        .to include("Thread at #{at("{ captured_in_frame")}", /shared/).and end_with("Kept::ByCapturedLocal")
    end

    it "the receiver of a method, and no more than 60 characters of the thread's name" do
      expect(path("ByReceiver"))
        .to eq(["Thread \"#{"w" * 60}…\"", "Receiver", "Worker", 'InstanceVariable("@held")', "Kept::ByReceiver"])
    end

    it "a local variable of a suspended fiber" do
      expect(path("ByFiber"))
        .to eq(["Fiber at #{at("Fiber.new { suspended }")}", local("rows", "suspended", "def suspended"), "Array (1)",
                "Element", "Kept::ByFiber"])
    end

    it "a variable of a fiber" do
      expect(path("ByFiberLocal"))
        .to eq(["Fiber at #{at("Fiber.new { suspended }")}", 'ThreadLocal("fiber_local")', "Kept::ByFiberLocal"])
    end

    it "the storage of a fiber" do
      skip "from Ruby 3.2 on" if RUBY_VERSION < "3.2"
      expect(path("ByFiberStorage")[2..]).to eq(["Hash (1)", 'Value(Some("stored"))', "Kept::ByFiberStorage"])
    end

    it "a local variable of a block from which an Enumerator takes its values" do
      place = "Enumerator.new do"
      expect(path("ByEnumerator"))
        .to eq(["Fiber at #{at(place)}", local("generated", "block in <top (required)>", place), "Kept::ByEnumerator"])
    end
  end

  it "finds an object that is held twice" do
    expect(path("Twice")).to end_with("Array (1)", "Element", "Kept::Twice")
  end

  it "passes through nothing that is weak" do
    expect(path("Weak")).to eq(from("NOT_WEAK", *(["Array (1)", "Element"] * 5), "Kept::Weak"))
  end

  it "finds what only a finalizer holds up to Ruby 3.3" do
    expected = [start_with("(root)", "Unknown", "(finalizers)", "Finalizer", "(finalizers)", "Finalizer")
      .and(end_with('Local("final")', "Kept::ByFinalizer"))]
    expect(paths.fetch("ByFinalizer")).to RUBY_VERSION < "3.4" ? match(expected) : eq([])
  end

  {
    "while each allocation collects garbage" => "GC.stress = true",
    "after compaction" => "GC.compact",
    # Up to Ruby 3.1 a collection that has begun to mark would move what it has not pinned.
    "in the middle of a compaction" => "GC.start; GC.auto_compact = true; GC.start(immediate_sweep: false)",
    "in the middle of a collection" => "Array.new(200_000) { Object.new }; GC.start(immediate_sweep: false)",
    "in the middle of a sweep" => <<~RUBY,
      faults.inject("heap settle", :deny)
      garbage = Array.new(100_000) { [Object.new, { key: "value" * 10 }, -> {}] }
      garbage = nil
      GC.start(immediate_sweep: false)
    RUBY
    "with a NEWOBJ hook" => "new_collector(sample_rate: 1.0).start"
  }.each do |circumstance, preparation|
    it "says the same #{circumstance}" do
      skip "cannot compact" if preparation.include?("compact") && !GC.respond_to?(:compact)
      held = %w[ByPrivateConstant OnString ByMember ByBlock ByThreadVariable ByLocal ByFiber]
      # The collector may leave any object's address on the stack, and up to Ruby 3.3 a fiber refers to all of that,
      # such as the main thread's own.
      on_stack = start_with(/\A(?:Fiber at -e:|Thread "main"\z)/, "Inside")
      expect(held.to_h { |kind| [kind, path(kind, preparation)] })
        .to match(held.to_h { |kind| [kind, eq(path(kind)).or(on_stack)] })
    end
  end

  # What is read from the VM's memory, and what cannot be said without it.
  {
    "constants" => ["ByConstant", "Audit | Unknown | Array (1) | Element | Kept::ByConstant"],
    "captured" => ["ByBlock", /Unknown | Array \(1\) | Element | Kept::ByBlock\z/],
    "frames" => ["ByLocal", 'Thread "puma 003" | Inside | Hash (1) | Value(Some("key")) | Kept::ByLocal'],
    "fiber_locals" => ["ByThreadLocal", 'Thread "puma 003" | Inside | Kept::ByThreadLocal'],
    "defaults" => ["ByDefault", /Hash \(0\) | Unknown | Kept::ByDefault\z/]
  }.each do |what, (kind, expected)|
    it "leaves unknown what it cannot read: #{what}" do
      lines = printed_by(<<~RUBY)
        faults.inject("heap #{what}", :deny)
        require #{Holders::PROGRAM.inspect}
        puts faults.heap_paths(Kept::#{kind}).map { |path| path.join(" | ") }
      RUBY
      expect(lines).to match([expected])
    end
  end

  it "reaches what is alive, and nothing else" do
    live, reached, fields = printed_by(<<~RUBY).map(&:to_i)
      require "objspace"
      Array.new(100_000) { Object.new }
      KEPT = Array.new(100_000) { |number| { number => number.to_s } }
      4.times { GC.start }
      puts GC.stat(:heap_live_slots), faults.heap_figures(false)[:objects]
      puts ObjectSpace.count_imemo_objects.fetch(:imemo_fields, 0)
    RUBY
    expect(reached + fields).to be_within(300).of(live)
  end

  it "measures objects as ObjectSpace does" do
    before, after, expected = printed_by(<<~RUBY).map(&:to_i)
      require "objspace"
      require "stringio"
      faults.heap_figures(true)
      puts faults.heap_figures(true)[:bytes]
      KEPT = [+"x" * 10_000_000, Array.new(1_000_000), StringIO.new]
      puts faults.heap_figures(true)[:bytes], KEPT.sum { |object| ObjectSpace.memsize_of(object) }
    RUBY
    expect(after - before).to be_within(100_000).of(expected)
  end

  it "lets extensions measure their objects only if told to, and whatever they do then" do
    skip CompiledExtension.missing if CompiledExtension.missing
    untold, told, objects = printed_by(<<~RUBY).map(&:to_i)
      require #{CompiledExtension.new("hostile").library.delete_suffix(".so").inspect}
      KEPT = Hostile.constants.map { |name| Hostile.const_get(name) }.grep(Class).map(&:new)
      faults.heap_figures(false)
      puts Hostile.calls
      objects = faults.heap_figures(true)[:objects]
      puts Hostile.calls, objects
    RUBY
    expect([untold, told, objects]).to match([0, be >= 6, be > 1_000])
  end

  it "reaches a class whose constant was removed through its instances" do
    path = printed_by(<<~RUBY)
      class Reloaded
        @kept = Class.new
        const_set(:Kept, @kept)
        @object = @kept.new
      end
      KEPT = Reloaded.new
      kept = Reloaded::Kept
      Object.send(:remove_const, :Reloaded)
      puts faults.heap_paths(kept).map { |path| path.join(" | ") }
    RUBY
    expect(path).to match([/\AObject .*"KEPT".* \| Reloaded \| Class \| Reloaded \| Inst.* Reloaded::Kept\z/])
  end

  # What runs in a copy of the process must not wait for a lock that another thread held at that moment.
  it "takes no memory from malloc, whatever it meets", :slow do
    skip CompiledExtension.missing if CompiledExtension.missing
    skip "needs glibc" unless Etc.const_defined?(:CS_GNU_LIBC_VERSION) && Etc.confstr(Etc::CS_GNU_LIBC_VERSION)
    trap = CompiledExtension.new("malloc_trap").library
    lines = printed_by(<<~RUBY, env: { "LD_PRELOAD" => trap })
      require #{Holders::PROGRAM.inspect}
      faults.heap_described
      kinds, calls = faults.heap_described
      puts calls, kinds.size
    RUBY
    expect([lines[0], lines[1].to_i]).to match(["0", be > 15])
  end
end
