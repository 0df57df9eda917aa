# frozen_string_literal: true

module Torture
  # Included in all classes whose objects are counted.
  module Counted
    CLASS_OF = Kernel.instance_method(:class)

    # @return [Hash{Class => Integer}] the objects that ObjectSpace finds
    def self.living
      counts = Hash.new(0)
      ObjectSpace.each_object(Counted) { |object| counts[CLASS_OF.bind_call(object)] += 1 }
      counts
    end
  end

  # Classes of many kinds whose objects are counted. Each slice of the torture has its own, so that earlier ones cannot
  # blur the count. {Herd}s create their objects.
  class Population
    # How to create a class of each kind, and an object of that class.
    TEMPLATES = {
      Plain: [-> { Class.new { def initialize(value) = @value = value } }, ->(kind, random) { kind.new(random) }],
      Wide: [-> { Class.new { def initialize = 12.times { |i| instance_variable_set(:"@v#{i}", i) } } },
             ->(kind, _) { kind.new }],
      Bare: [-> { Class.new(BasicObject) }, ->(kind, _) { kind.new }],
      Text: [-> { Class.new(String) }, ->(kind, random) { kind.new("t" * random.rand(60)) }],
      Long: [-> { Class.new(String) }, ->(kind, random) { kind.new("t" * random.rand(5000)) }],
      Shared: [-> { Class.new(String) }, ->(kind, _) { kind.new(LONG).dup.freeze }],
      Labelled: [-> { Class.new(String) }, ->(kind, _) { kind.new.tap { |text| text.instance_variable_set(:@a, 1) } }],
      List: [-> { Class.new(Array) }, ->(kind, random) { kind.new(random.rand(50)) }],
      Table: [-> { Class.new(Hash) }, ->(kind, random) { kind.new.tap { |t| random.rand(12).times { |i| t[i] = i } } }],
      Pair: [-> { Struct.new(:left, :right) }, ->(kind, _) { kind.new(1, [2]) }],
      Failure: [-> { Class.new(StandardError) }, ->(kind, _) { kind.new("on purpose") }],
      Space: [-> { Class.new(Module) }, ->(kind, _) { kind.new { def anything = 1 } }],
      Pattern: [-> { Class.new(Regexp) }, ->(kind, random) { kind.new("a{#{random.rand(9)}}") }],
      Single: [-> { Class.new }, ->(kind, _) { kind.new.tap { |object| def object.own = 1 } }],
      Frozen: [-> { Class.new }, ->(kind, _) { kind.new.freeze }],
      Copied: [-> { Class.new { def initialize = @list = [1] } }, ->(kind, _) { kind.new.clone(freeze: true) }],
      Callable: [-> { Class.new(Proc) }, ->(kind, random) { kind.new { random } }]
    }.freeze
    LONG = ("shared " * 100).freeze
    # How many objects one creation allocates, if not 1.
    MADE = Hash.new(1).merge!(Copied: 2).freeze
    # A Proc gets its own class after its allocation was reported; how many Strings share one text is up to the VM.
    UNCOUNTED = %i[Callable Shared].freeze

    attr_reader :name, :classes, :herds, :space

    # @param exact [Boolean] whether all allocations are counted: not where exceptions may come at any moment
    def initialize(name, exact: true)
      @name = name
      @exact = exact
      @lock = Mutex.new
      @herds = []
      @space = Torture.const_set(name, Module.new)
      @classes = TEMPLATES.to_h { |kind, (make, _)| [kind, @space.const_set(kind, make.call.include(Counted))] }
    end

    # Adds a kind; the block gets the class and creates its objects.
    def add_class(kind, base, &make)
      @classes[kind] = @space.const_set(kind, Class.new(base).include(Counted))
      makers[kind] = make
    end

    def make(kind, random)
      maker = makers[kind] || TEMPLATES.fetch(kind).last
      maker.call(@classes.fetch(kind), random)
    end

    def herd(random, **options)
      Herd.new(self, random, **options).tap { |herd| @lock.synchronize { @herds << herd } }
    end

    # Class name => objects that ObjectSpace finds.
    def living(counts = Counted.living)
      @classes.to_h { |kind, type| ["Torture::#{name}::#{kind}", counts[type]] }
    end

    # Class name => objects ever allocated, where known.
    def allocated
      return {} unless @exact

      (@classes.keys - UNCOUNTED).to_h { |kind| ["Torture::#{name}::#{kind}", @herds.sum { |herd| herd.made[kind] }] }
    end

    def drop
      @herds.each(&:clear)
      Torture.send(:remove_const, name)
    end

    private

    def makers
      @makers ||= {}
    end
  end

  # Objects created by one thread: some are kept, some dropped.
  class Herd
    # kind => objects allocated
    attr_reader :made, :kept

    def initialize(population, random, limit: 300, kinds: nil)
      @population = population
      @random = random
      @limit = limit
      @kinds = kinds || Population::TEMPLATES.keys
      @made = Hash.new(0)
      @kept = []
    end

    # Adds an object, in place of an old one if there are many.
    def add(kind = @kinds[@random.rand(@kinds.size)])
      object = @population.make(kind, @random)
      @made[kind] += Population::MADE[kind]
      @kept.size < @limit ? @kept << object : @kept[@random.rand(@limit)] = object
      object
    end

    def grow(count)
      count.times { add }
    end

    # Counts an object that was allocated elsewhere.
    def count(kind, objects = 1)
      @made[kind] += objects
    end

    def shrink(share = 0.5)
      @kept.pop((@kept.size * share).to_i)
    end

    def clear
      @kept.clear
    end
  end
end
