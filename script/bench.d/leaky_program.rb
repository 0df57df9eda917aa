# frozen_string_literal: true

# A program for script/bench_leaks: `leaky_program.rb SEED leak|none always|windows`. Prints the verdict of `leaks`:
# "first" if the leak is the first growing line, "nothing" if no line grows, or else the name of the first one; then the
# number of other growing lines.

require "ruby_memprofiler_pprof/report"

# Lines that allocate, each in its own method with its own line. What they do differs in kind, and at random.
class BusyLines
  SITES = 200
  KINDS = %i[garbage steady queue lru warm slow_warm batches sawtooth].freeze
  ROUNDS = 40
  # How many objects the leak keeps per round; one in ten is sampled.
  LEAKED = 40
  FILE = "/app/lines.rb"

  # @param seed [Integer]
  # @param leak [Boolean]
  # @param pieces [Integer] in how many pieces the leak's objects of a round come
  def initialize(seed, leak:, pieces: 1)
    @random = Random.new(seed)
    @kinds = Array.new(SITES) { KINDS.sample(random: @random) }
    @sizes = Array.new(SITES) { @random.rand(20..300) }
    @held = Array.new(SITES) { [] }
    @leak = leak
    @pieces = pieces
    @leaked = []
    (SITES + 1).times { |site| define_line(site) }
  end

  # The name of the line that leaks.
  def leak
    "#{FILE}:#{SITES + 1}" if @leak
  end

  def round(number)
    SITES.times do |site|
      send(@kinds[site], site, @held[site], @sizes[site], number)
      leak_some if @leak && ((site + 1) % (SITES / @pieces)).zero?
    end
  end

  private

  # Some objects that are kept, and as many that are not.
  def leak_some
    @leaked.concat(allocate(SITES, LEAKED / @pieces))
    allocate(SITES, @random.rand(2 * LEAKED / @pieces))
  end

  def define_line(site)
    # def line7(count) = Array.new(count) { String.new("some text that is no literal") }
    code = "def line#{site}(count) = Array.new(count) { String.new('some text that is no literal') }"
    BusyLines.class_eval(code, FILE, site + 1)
  end

  def allocate(site, count)
    public_send(:"line#{site}", count)
  end

  def garbage(site, _held, size, _round)
    allocate(site, @random.rand(size * 2))
  end

  # Objects that arrive and live for a certain time.
  def steady(site, held, size, round)
    held.reject! { |_, death| death <= round }
    count = @random.rand((size / 2)..size) / 5
    held.concat(allocate(site, count).map { |object| [object, round - (5 * Math.log(1 - @random.rand))] })
  end

  # A queue of random length.
  def queue(site, held, size, _round)
    held.concat(allocate(site, @random.rand(size)))
    held.shift(@random.rand((held.size / 2)..held.size))
  end

  # Full from the first round on.
  def lru(site, held, size, round)
    held.concat(allocate(site, round.zero? ? size * 3 : @random.rand(size / 4)))
    held.shift([held.size - (size * 3), 0].max)
  end

  # Fills up within a few rounds.
  def warm(site, held, size, round)
    held.concat(allocate(site, size)) if round < 3 + (site % 5)
  end

  # The fuller it is, the fewer entries are missing.
  def slow_warm(site, held, size, _round)
    missing = (size * 5) - held.size
    held.concat(allocate(site, (missing * 0.3 * @random.rand).round))
  end

  # Occasionally many at once, for a while.
  def batches(site, held, size, round)
    held.reject! { |_, death| death <= round }
    return unless @random.rand(4).zero?

    death = round + @random.rand(1..3)
    held.concat(allocate(site, size).map { |object| [object, death] })
  end

  # Accumulates, and then releases everything.
  def sawtooth(site, held, size, round)
    held.clear if (round % (3 + (site % 7))).zero?
    held.concat(allocate(site, size / 2))
  end
end

seed = Integer(ARGV.fetch(0))
# Collections happen per round, independently of the machine.
GC.disable
sampling = ARGV.fetch(2).to_sym
pieces = sampling == :windows ? BusyLines::LEAKED : 1
program = BusyLines.new(seed, leak: ARGV.fetch(1) == "leak", pieces: pieces)
windows = { window_frame: 0.001, window_duty: 0.25, max_sampling_time: 1.0 }
collector = MemprofilerPprof::Collector.new(sample_rate: 0.1, sampling: sampling, seed: seed, **windows).start
raise "sampling is not #{sampling}" unless collector.stats[:sampling] == sampling

snapshots = Array.new(BusyLines::ROUNDS) do |round|
  program.round(round)
  GC.start(full_mark: (round % 6).zero?, immediate_sweep: true) if (round % 2).zero?
  data = collector.flush
  # An hour each, whatever it took: the intervals leave gaps.
  MemprofilerPprof.without_profiling { MemprofilerPprof::Report::Snapshot.new(data.profile, time: round * 3600) }
end
growing = MemprofilerPprof::Report::Leaks.new(snapshots).growing.map { |finding| finding.growth.site.name }
others = growing - [program.leak]
puts(growing.any? && growing.first == program.leak ? "first" : growing.first || "nothing")
puts others.size
