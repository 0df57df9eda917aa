# frozen_string_literal: true

# A program with every kind of holder: each holds an instance of a class of its own, in the module Kept.

require "set"
require "weakref"

# The classes of what is held.
module Kept
  def self.const_missing(name) = const_set(name, Class.new)
end

module Audit
  LOG = [Kept::ByConstant.new].freeze
  HIDDEN = { entry: Kept::ByPrivateConstant.new }.freeze
  private_constant :HIDDEN
end

class Shop
  @cards = { "a string" => Kept::ByClassVariable.new }
  @@all = [Kept::ByVariableOfTheHierarchy.new] # rubocop:disable Style/ClassVars
  Sale = Struct.new(:price, :note)

  attr_accessor :item

  singleton_class.instance_variable_set(:@of_singleton, Kept::BySingletonClass.new)

  def initialize(item) = @item = item
end

ITEM = Shop.new(Kept::ByInstanceVariable.new)
BY_SYMBOL = { card: Kept::BySymbolKey.new }.freeze
KEYS = { Kept::AsKey.new => 1 }.freeze
SET = Set[Kept::InSet.new].freeze
DEFAULT = Hash.new(Kept::ByDefault.new)
DEFAULT_BLOCK = ->(kept) { Hash.new { |_hash, _key| kept } }.call(Kept::ByDefaultBlock.new)
SALE = Shop::Sale.new(1, Kept::ByMember.new)
SUBSALE = Class.new(Shop::Sale).new(Kept::ByMemberOfSubclass.new)
TEXT = +"text"
TEXT.instance_variable_set(:@note, Kept::OnString.new)
LIST = [*Array.new(19_999), Kept::InList.new].freeze
SHARED = [*Array.new(100), Kept::InSharedArray.new].then { |list| [list, list.drop(50)] }
WEAK = [WeakRef.new(kept = Kept::Weak.new), ObjectSpace::WeakMap.new.tap { |map| map[kept] = kept }].freeze
NOT_WEAK = [[[[[kept]]]]].freeze
kept = nil

$recent = [Kept::ByGlobal.new] # rubocop:disable Style/GlobalVars

def captured_by_block
  rows = [Kept::ByBlock.new]
  -> { rows }
end
BLOCK = captured_by_block

def captured_by_outer_block
  outer = Kept::ByOuterBlock.new
  [1].map { |inner| -> { [outer, inner] } }
end
BLOCKS = captured_by_outer_block

def captured_by_binding
  bound = Kept::ByBinding.new
  binding.tap { |scope| scope.local_variable_set(:same, bound) }
end
BINDING = captured_by_binding

def captured_by_method
  defined = Kept::ByDefinedMethod.new
  Shop.define_method(:dynamic) { defined }
end
captured_by_method

module Kept
  class ByMethodObject
    def run = nil
  end
end
METHOD = Kept::ByMethodObject.new.method(:run)

module Kept
  # Like Observable, which is a gem from Ruby 3.4 on.
  class Subject
    def add_observer(observer) = (@observer_peers ||= {})[observer] = :update
  end

  class ByObservers
    def update = nil
  end
end
SUBJECT = Kept::Subject.new.tap { |subject| subject.add_observer(Kept::ByObservers.new) }

def finalized
  final = Kept::ByFinalizer.new
  ObjectSpace.define_finalizer(TEXT, proc { final })
end
finalized

def work(queue)
  cache = { key: Kept::ByLocal.new }
  Thread.current[:fiber_local] = Kept::ByThreadLocal.new
  Thread.current.thread_variable_set(:thread_local, Kept::ByThreadVariable.new)
  [Kept::ByBlockParameter.new].each { |item| park(item, cache, queue) }
end

def park(item, *rest, named: Kept::ByKeyword.new)
  queue = rest.pop
  forward(Kept::ByForwarded.new, queue)
  [item, named]
end

def forward(first, ...) = wait(first.itself, ...)

def wait(_again, queue)
  queue << :parked
  sleep
end

def captured_in_frame(queue)
  shared = Kept::ByCapturedLocal.new
  block = -> { shared }
  queue << :parked
  sleep
  block
end

class Worker
  def initialize = @held = Kept::ByReceiver.new

  def run(queue)
    queue << :parked
    sleep
  end
end

def threads
  queue = Queue.new
  named = Thread.new { work(queue) }
  named.name = "puma 003"
  Thread.new { captured_in_frame(queue) }
  # Nothing of the stack that it is made on is left.
  worker = Thread.new { Worker.new }.value
  Thread.new { worker.run(queue) }.name = "w" * 80
  Thread.new { [Kept::ByBlockLocal.new].each { |held| queue << held.frozen? and sleep } }
  4.times { queue.pop }
  Thread.pass until Thread.list.drop(1).all?(&:stop?)
end
threads

def suspended
  rows = [Kept::ByFiber.new]
  Thread.current[:fiber_local] = Kept::ByFiberLocal.new
  Fiber.yield
  rows
end
FIBER = Fiber.new { suspended }
FIBER.resume
if RUBY_VERSION >= "3.2"
  STORAGE = Fiber.new(storage: { stored: Kept::ByFiberStorage.new }) { Fiber.yield }
  STORAGE.resume
end

ENUMERATOR = Enumerator.new do |yielder|
  generated = Kept::ByEnumerator.new
  yielder << 1
  yielder << generated
end
ENUMERATOR.next
EACH = [Kept::EnumeratedObject.new].each

def twice
  kept = Kept::Twice.new
  $twice = [kept] # rubocop:disable Style/GlobalVars
  Shop.instance_variable_set(:@twice, { deep: [kept] })
end
twice
