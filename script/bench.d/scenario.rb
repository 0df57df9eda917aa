# frozen_string_literal: true

# The scenario of the 2022 gem's script/benchmark.rb: a machine that calls, returns, allocates and drops at random.
# Differences: the seed is fixed; steps are read by index rather than removed from the front of an array (moving the
# rest took far longer than everything else); and an object's string is a hundredth as long, since all of them together
# took 4 GB.
class Scenario
  CLASSES = 10_000
  METHODS = 20_000
  STEPS = 700_000
  MAX_DEPTH = 100
  SEED = 2022

  # Common to the classes: a string of up to 2,400 bytes.
  module Big
    RANDOM = Random.new(SEED)

    def fill(number)
      @big_string = RANDOM.bytes(12).unpack1("H*") * (number % 100)
    end
  end

  def initialize
    @random = Random.new(SEED)
    @classes = define_classes
    define_methods
    @depth = 0
    @kept = 0
    @steps = Array.new(STEPS) { step }
  end

  # Runs the whole scenario.
  #
  # @return [Integer] objects that are alive at the end
  def run
    @position = 0
    @pit = []
    machine
    @pit.size
  end

  private

  # Each initialize and each method has its own code, on its own line.
  def define_classes
    define("classes.rb", CLASSES) do |number|
      "class BenchmarkClass#{number}; include Scenario::Big; def initialize = fill(#{number}); end"
    end
    Array.new(CLASSES) { |number| Object.const_get("BenchmarkClass#{number}") }
  end

  def define_methods
    define("methods.rb", METHODS) { |number| "class Scenario; def method_#{number} = machine; end" }
  end

  def define(file, count, &)
    RubyVM::InstructionSequence.compile(Array.new(count, &).join("\n"), file).eval
  end

  # The 2022 gem's probabilities: half of the steps call or return, the others allocate slightly more often than they
  # drop.
  def step
    if @random.rand < 0.5
      call_or_return
    elsif @random.rand < 0.55 || @kept.zero?
      @kept += 1
      @classes.sample(random: @random)
    else
      @kept -= 1
      :drop
    end
  end

  def call_or_return
    if @depth.zero? || (@depth < MAX_DEPTH && @random.rand < 0.85)
      @depth += 1
      :"method_#{@random.rand(METHODS)}"
    else
      @depth -= 1
      :return
    end
  end

  def machine
    while (step = @steps[@position])
      @position += 1
      case step
      when Class then @pit << step.new
      when :drop then @pit.pop
      when :return then return
      else __send__(step)
      end
    end
  end
end
