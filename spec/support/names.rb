# frozen_string_literal: true

# Stacks as in the newest Ruby's backtraces, on every Ruby. Each scenario is a separate file, in `module App`, and ends
# in Names.mark.
module Names
  Marker = Class.new
  # Enough runs for a JIT compiler to take part.
  RUNS = defined?(RubyVM::YJIT.enabled?) && RubyVM::YJIT.enabled? ? 100 : 2

  class << self
    attr_reader :locations, :observed
    # What is called in each scenario, if anything.
    attr_accessor :observer

    # An object, and Ruby's own backtrace from the same place.
    def mark
      @observed = observer&.call
      [Marker.allocate, @locations = caller_locations(0)].first
    end

    def run(&)
      RUNS.times(&)
    end

    # Description => what is defined, what is called, and the names of the frames outside Names.mark.
    def scenarios
      @scenarios ||= {}
    end

    def scenario(description, definition, call, *names)
      scenarios[description] = [definition, call, names]
    end
  end

  scenario "an instance method", "class Foo; def bar = Names.mark; end", "Foo.new.bar", "App::Foo#bar"
  scenario "a method of the main object", "end; def at_top = Names.mark; module App", "at_top", "Object#at_top"
  scenario "a class method", "class Foo; def self.bar = Names.mark; end", "Foo.bar", "App::Foo.bar"
  scenario "a method of `class << self`", "class Foo; class << self; def bar = Names.mark; end; end", "Foo.bar",
           "App::Foo.bar"
  scenario "an inherited class method", "class Foo; def self.bar = Names.mark; end; class Sub < Foo; end", "Sub.bar",
           "App::Foo.bar"
  scenario "a module function of the module", "module M; module_function; def bar = Names.mark; end", "M.bar",
           "App::M.bar"
  scenario "a module function in a class",
           "module M; module_function; def bar = Names.mark; end; class Foo; include M; def foo = bar; end",
           "Foo.new.foo", "App::M#bar", "App::Foo#foo"
  scenario "a module that extends itself", "module M; extend self; def bar = Names.mark; end", "M.bar", "App::M#bar"
  scenario "operators and setters",
           "class Foo; def []=(_, _); Names.mark; end; def <=>(_) = self[1] = 2; def ! = self <=> 1; end", "!Foo.new",
           "App::Foo#[]=", "App::Foo#<=>", "App::Foo#!"
  scenario "names in Unicode", "class Größe; def 测量? = Names.mark; end", "Größe.new.测量?", "App::Größe#测量?"
  scenario "a block", "class Foo; def bar = [1].each { Names.mark }; end", "Foo.new.bar",
           "block in App::Foo#bar", "Array#each", "App::Foo#bar"
  scenario "nested blocks", "class Foo; def bar = [1].map { 1.times { Names.mark } }; end", "Foo.new.bar",
           "block (2 levels) in App::Foo#bar", "Integer#times", "block in App::Foo#bar", "Array#map", "App::Foo#bar"
  scenario "a lambda", "class Foo; def bar = -> { Names.mark }; end", "Foo.new.bar.call", "block in App::Foo#bar"
  scenario "a block of a class method", "class Foo; def self.bar = tap { Names.mark }; end", "Foo.bar",
           "block in App::Foo.bar", "Kernel#tap", "App::Foo.bar"
  scenario "a for loop", "class Foo; def bar; for i in [1] do Names.mark; end; end; end", "Foo.new.bar",
           "block in App::Foo#bar", "Array#each", "App::Foo#bar"
  scenario "instance_exec", "class Foo; def bar = Object.new.instance_exec { Names.mark }; end", "Foo.new.bar",
           "block in App::Foo#bar", "BasicObject#instance_exec", "App::Foo#bar"
  scenario "define_method", "class Foo; define_method(:dm) { Names.mark }; end", "Foo.new.dm", "App::Foo#dm"
  scenario "define_method with blocks inside",
           "class Foo; define_method(:dm) { [1].map { 1.times { Names.mark } } }; end", "Foo.new.dm",
           "block (2 levels) in App::Foo#dm", "Integer#times", "block in App::Foo#dm", "Array#map", "App::Foo#dm"
  scenario "define_method with a rescue inside",
           "class Foo; define_method(:dm) do raise; rescue RuntimeError; [1].map { Names.mark }; end; end",
           "Foo.new.dm", "block in App::Foo#dm", "Array#map", "App::Foo#dm", "block in <module:App>"
  scenario "define_method with an eval inside", "class Foo; define_method(:dm) { eval('Names.mark') }; end",
           "Foo.new.dm", "App::Foo#dm", "Kernel#eval", "App::Foo#dm", "block in <module:App>"
  scenario "define_singleton_method", "class Foo; define_singleton_method(:dm) { Names.mark }; end", "Foo.dm",
           "App::Foo.dm"
  scenario "define_method with a method",
           "class Foo; def bar = Names.mark; end; class Sub < Foo; define_method(:b, instance_method(:bar)); end",
           "Sub.new.b", "App::Sub#bar"
  scenario "a refinement", "module R; refine(String) { def bar = Names.mark }; end; using R", "''.bar", "bar"
  scenario "a prepended module",
           "class Foo; def bar = Names.mark; end; module M; def bar = super; end; Foo.prepend(M)", "Foo.new.bar",
           "App::Foo#bar", "App::M#bar"
  scenario "an included module", "module M; def bar = Names.mark; end; class Foo; include M; end", "Foo.new.bar",
           "App::M#bar"
  scenario "super through several levels",
           "class A; def bar = Names.mark; end; class B < A; def bar = super(); end; class C < B; def bar = super; end",
           "C.new.bar", "App::A#bar", "App::B#bar", "App::C#bar"
  scenario "a method made public in a subclass",
           "class Foo; private def bar = Names.mark; end; class Sub < Foo; public :bar; end", "Sub.new.bar",
           "App::Foo#bar"
  scenario "methods of an anonymous class",
           "K = [Class.new { def bar = Names.mark; def self.foo = new.bar; define_method(:dm) { self.class.foo } }]",
           "K[0].new.dm", "bar", "foo", "dm"
  scenario "a class in an anonymous module", "K = [Module.new { class self::In; def bar = Names.mark; end }]",
           "K[0]::In.new.bar", "bar"
  scenario "a method of one object", "O = Object.new; def O.bar = Names.mark", "O.bar", "bar"
  scenario "class and module bodies",
           "module M; class Foo; class << self; Names.mark; end; end; end", "",
           "singleton class", "<class:Foo>", "<module:M>", "<module:App>", "<top (required)>", "Kernel#load"
  scenario "method_missing",
           "class Foo; def method_missing(*) = Names.mark; def respond_to_missing?(*) = true; end", "Foo.new.bar",
           "App::Foo#method_missing"
  scenario "an alias", "class Foo; def bar = Names.mark; alias foo bar; end", "Foo.new.foo", "App::Foo#bar"
  scenario "an alias in a subclass",
           "class Foo; def bar = Names.mark; end; class Sub < Foo; alias_method :foo, :bar; end", "Sub.new.foo",
           "App::Sub#bar"
  scenario "a rescue body", "class Foo; def bar; raise; rescue RuntimeError; Names.mark; end; end", "Foo.new.bar",
           "App::Foo#bar", "block in <module:App>"
  scenario "a rescue body in a block", "class Foo; def bar = [1].map { raise rescue Names.mark }; end", "Foo.new.bar",
           "block in App::Foo#bar", "Array#map", "App::Foo#bar"
  scenario "a rescue body in a rescue body",
           "class Foo; def bar; raise; rescue RuntimeError; (raise rescue Names.mark); end; end", "Foo.new.bar",
           "App::Foo#bar", "block in <module:App>"
  scenario "an ensure body", "class Foo; def bar; raise; ensure Names.mark; return; end; end", "Foo.new.bar",
           "App::Foo#bar", "block in <module:App>"
  scenario "eval", "class Foo; def bar = eval('1.times { Names.mark }'); end", "Foo.new.bar",
           "block in App::Foo#bar", "Integer#times", "App::Foo#bar", "Kernel#eval", "App::Foo#bar"
  scenario "a method of a Struct", "Foo = Struct.new(:a) { def bar = Names.mark }", "Foo.new(1).bar", "App::Foo#bar"
  scenario "C functions with blocks", "", "Class.new { [1].each_with_index { { a: 1 }.each { Names.mark } } }",
           "block (4 levels) in <module:App>", "Hash#each", "block (3 levels) in <module:App>", "Array#each",
           "Enumerable#each_with_index", "block (2 levels) in <module:App>", "Class#initialize", "Class#new"
  scenario "C functions of classes", "", "File.open(File::NULL) { catch { Names.mark } }",
           "block (3 levels) in <module:App>", "Kernel#catch", "block (2 levels) in <module:App>", "IO.open"
  scenario "C functions that call methods", "class Foo; include Comparable; def <=>(_); Names.mark; 0; end; end",
           "Foo.new.public_send(:==, 1)", "App::Foo#<=>", "Comparable#==", "Kernel#public_send"
  scenario "a method called as an object", "class Foo; def bar = Names.mark; end", "Foo.new.method(:bar).call",
           "App::Foo#bar", "Method#call", "block in <module:App>"
  scenario "a method called by a symbol's proc", "class Foo; def bar = Names.mark; end", "[Foo.new].each(&:bar)",
           "App::Foo#bar", "Array#each", "block in <module:App>"
  scenario "a fiber", "", "Fiber.new { Names.mark }.resume", "block (2 levels) in <module:App>"
  scenario "a thread", "", "Thread.new { [1].each { Names.mark } }.join",
           "block (3 levels) in <module:App>", "Array#each", "block (2 levels) in <module:App>"
  scenario "an external enumerator", "", "Enumerator.new { |y| y << Names.mark }.next",
           "block (2 levels) in <module:App>", "Enumerator::Generator#each", "Enumerator#each"
  if defined?(Data.define)
    scenario "a method of a Data", "Foo = Data.define(:a) { def bar = Names.mark }", "Foo.new(a: 1).bar", "App::Foo#bar"
  end
  if Class.method_defined?(:set_temporary_name)
    scenario "a class with a temporary name",
             "K = [Class.new { def bar = Names.mark }.set_temporary_name('tmp<1>')]", "K[0].new.bar", "bar"
  end
end
