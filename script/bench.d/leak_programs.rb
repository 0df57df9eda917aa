# frozen_string_literal: true

require "json"
require "set"
require "stringio"

# Programs for the leak check, with known verdicts. One long list.
# rubocop:disable Metrics/AbcSize, Metrics/MethodLength, Metrics/ModuleLength
module LeakPrograms
  # Its name, its kind, whether it leaks, options for the check, and a block that returns the block to check, with
  # everything it needs freshly created.
  Program = Struct.new(:name, :kind, :leaks, :options, :setup) do
    def prepare
      setup.call
    end

    # For grep.
    def to_str
      name
    end
  end

  ITEM = Struct.new(:key, :value)
  FINALIZER = proc {}

  module_function

  def all
    sound + leaky.map { |name, setup| Program.new(name, "leak 1 object per call", true, {}, setup) } +
      rarely_leaky.map { |name, setup| Program.new(name, "leak 1 object per 10 calls", true, {}, setup) }
  end

  def sound
    plain.merge(caches).map { |name, setup| Program.new(name, "do not leak", false, {}, setup) }
  end

  def plain
    {
      "nothing" => -> { -> {} },
      "strings, built and frozen" => lambda do
        -> { Array.new(20) { |i| "item #{i}" }.join(",").sub("item", "x").freeze }
      end,
      "string interning" => lambda do
        count = 0
        -> { "symbol#{count += 1}".to_sym && -"string#{count}" }
      end,
      "exceptions" => lambda do
        lambda do
          raise ArgumentError, "with a message"
        rescue ArgumentError => e
          e.full_message
        end
      end,
      "Struct objects" => -> { -> { ITEM.new("a".dup, [1, 2]).to_a } },
      "Struct classes" => -> { -> { Struct.new(:a, :b).new(1, 2).a } },
      "threads" => -> { -> { Thread.new { "x" * 10 }.value } },
      "fibers and enumerators" => -> { -> { [1, 2, 3].each.tap { |e| 2.times { e.next } } } },
      "JSON there and back" => -> { -> { JSON.parse(JSON.generate("a" => [1, { "b" => "c" }] * 10)) } },
      "the last result in a variable" => lambda do
        last = nil
        -> { last = Array.new(1000) { |i| "entry #{i}" } }
      end,
      "regexp matches" => -> { -> { "a=1;b=2".scan(/(\w)=(\d)/).to_h && Regexp.last_match } },
      "methods defined again" => lambda do
        object = Object.new
        -> { object.define_singleton_method(:again) { Object.new } && object.again }
      end,
      "finalizers" => -> { -> { StringIO.new.tap { |io| ObjectSpace.define_finalizer(io, FINALIZER) } } }
    }
  end

  def caches
    {
      "memoized, 30 keys" => -> { memoized(30) },
      "memoized, 1,000 keys" => -> { memoized(1000) },
      "LRU cache of 30" => -> { least_recently_used(30) },
      "LRU cache of 500" => -> { least_recently_used(500) },
      "LRU cache of 5,000" => -> { least_recently_used(5000) },
      "ring of 100,000, full before" => lambda do
        ring = Array.new(100_000, &:to_s)
        count = 0
        -> { ring[(count += 1) % ring.size] = count.to_s }
      end,
      "cache emptied when full, 1,000" => lambda do
        cache = {}
        count = 0
        lambda do
          cache.clear if cache.size >= 1000
          cache[count += 1] = "value #{count}"
        end
      end,
      "built at the 50th call" => lambda do
        table = nil
        count = 0
        -> { (count += 1) >= 50 && table ||= Array.new(1000) { |i| "row #{i}" } }
      end,
      "pool that grows to 60" => lambda do
        pool = []
        -> { pool.size < 60 && rand < 0.2 ? pool << "connection".dup : pool.sample }
      end
    }
  end

  def memoized(keys)
    values = {}
    -> { (key = rand(keys)) && values[key] ||= "value #{key}" }
  end

  def least_recently_used(size)
    cache = {}
    count = 0
    lambda do
      cache[count += 1] = "value #{count}"
      cache.shift if cache.size > size
    end
  end

  def leaky
    {
      "into an Array" => lambda do
        list = []
        -> { list << Object.new }
      end,
      "into a Hash, among garbage" => lambda do
        cache = {}
        count = 0
        lambda do
          Array.new(50) { |i| "garbage #{i}" }
          cache[count += 1] = "value"
          cache[count] = cache[count].dup
        end
      end,
      "a closure" => lambda do
        callbacks = []
        -> { callbacks << proc {} }
      end,
      "a linked list" => lambda do
        head = nil
        -> { head = ITEM.new(1, head) }
      end,
      "from a thread" => lambda do
        list = []
        -> { Thread.new { list << Object.new }.join }
      end,
      "beside a cache that fills up" => lambda do
        cache = least_recently_used(500)
        list = []
        lambda do
          cache.call
          list << Object.new
        end
      end,
      "beside a large last result" => lambda do
        last = nil
        list = []
        -> { (last = Array.new(rand(1000)) { |i| "entry #{i}" }) && (list << Object.new) }
      end,
      "waits 1 ms" => lambda do
        list = []
        -> { sleep(0.001) && (list << Object.new) }
      end,
      "works for some 0.5 ms" => -> { leak_beside_work(5) },
      "works for some 5 ms" => -> { leak_beside_work(50) },
      "works for some 50 ms" => -> { leak_beside_work(500) }
    }
  end

  def leak_beside_work(tenths)
    list = []
    -> { (tenths * 3000).times { |i| Math.sqrt(i) } && (list << Object.new) }
  end

  def rarely_leaky
    {
      "every tenth call" => lambda do
        list = []
        count = 0
        -> { ((count += 1) % 10).zero? && (list << Object.new) }
      end,
      "at random" => lambda do
        list = []
        -> { rand < 0.1 && (list << Object.new) }
      end
    }
  end
end
# rubocop:enable Metrics/AbcSize, Metrics/MethodLength, Metrics/ModuleLength
