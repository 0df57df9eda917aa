# frozen_string_literal: true

require "json"
require "pathname"
require "stringio"
require "tempfile"
require "timeout"
require "zlib"

# A program with known figures: everything is sampled.
module KnownProgram
  Kept = Class.new
  Other = Class.new

  module_function

  def keep(depth = 1)
    depth.zero? ? Array.new(30) { Kept.new } : [keep(depth - 1), Array.new(10) { Kept.new }]
  end

  def other
    Array.new(5) { Other.new }
  end
end

# Reading profiles. The core crate tests the sums themselves; this tests what Ruby sees of them.
RSpec.describe MemprofilerPprof::Profile, :threads do
  def data(rate = 1.0)
    new_collector(sample_rate: rate, seed: 1).profile do
      kept << KnownProgram.keep
      kept << KnownProgram.other
    end
  end

  def kept
    @kept ||= []
  end

  let(:bytes) { data.pprof_data }
  let(:profile) { described_class.load(bytes) }
  let(:decoded) { Pprof.decode(bytes) }

  def classes(profile, **options)
    profile.top(by: :class, type: :retained_objects, **options)
           .to_h { |site| [site.name[/\w+\z/], site.flat.value] }.slice("Kept", "Other")
  end

  describe ".load" do
    it "reads bytes, gzipped or not" do
      expect(described_class.load(Zlib.gunzip(bytes))).to eq(profile)
    end

    it "reads a file by its name, a String or Pathname" do
      Tempfile.create do |file|
        File.binwrite(file.path, bytes)
        expect([file.path, Pathname(file.path)].map { |path| described_class.load(path) }).to all(eq(profile))
      end
    end

    it "reads an IO" do
      Tempfile.create do |file|
        file.binmode.write(bytes)
        file.rewind
        expect([file, StringIO.new(bytes)].map { |io| described_class.load(io) }).to all(eq(profile))
      end
    end

    it "reads a Tempfile from where it is, by its own descriptor" do
      Tempfile.open(binmode: true) do |file|
        file.write("before", bytes)
        file.seek(6)
        expect(described_class.load(file)).to eq(profile)
      end
    end

    it "asks an IO for no more than a mebibyte at a time" do
      io = StringIO.new(bytes)
      allow(io).to receive(:read).and_call_original
      described_class.load(io)
      expect(io).to have_received(:read).with(1 << 20).at_least(:once)
    end

    it "reads on where an IO gives less than it is asked for" do
      io = StringIO.new(bytes)
      io.define_singleton_method(:read) { |size| super([size, 100].min) }
      expect(described_class.load(io)).to eq(profile)
    end

    it "names an IO that has no path" do
      reader, writer = IO.pipe
      writer.write("x")
      writer.close
      expect { described_class.load(reader) }
        .to raise_error(MemprofilerPprof::ProfileError, /\A#<IO:fd \d+>: not a valid pprof profile/)
    end

    it "raises Ruby's own error for a missing file" do
      expect { described_class.load("/nowhere/a.pprof") }.to raise_error(Errno::ENOENT, %r{/nowhere/a.pprof})
    end

    it "names the file and the position of an error" do
      Tempfile.create do |file|
        File.binwrite(file.path, bytes[0...-20])
        place = "byte #{bytes.size - 20} of the gzipped data"
        error = /\A#{Regexp.escape(file.path)}: not a valid pprof profile: #{place}: /
        expect { described_class.load(file.path) }.to raise_error(MemprofilerPprof::ProfileError, error)
      end
    end

    it "refuses data that is not a profile" do
      ["\0", "{\"a\": \0}", Zlib.gzip("hello"), "\x1f\x8b\0"].each do |other|
        expect { described_class.load(other) }
          .to raise_error(MemprofilerPprof::ProfileError, /\Aprofile of \d+ bytes: not a valid pprof profile: /)
      end
    end

    it "refuses a decompression bomb without unpacking it" do
      bomb = Zlib.gzip("\0" * 50_000_000)
      refusal = cpu_time do
        expect { described_class.load(bomb, max_bytes: 1000) }
          .to raise_error(MemprofilerPprof::ProfileError, /has more than 1000 bytes when decompressed/)
      end
      expect(refusal).to be < cpu_time { Zlib.gunzip(bomb) } / 3
    end

    # The minimum of several times: a garbage collection may fall into one of them.
    def cpu_time
      Array.new(5) do
        before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        yield
        Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
      end.min
    end

    it "reads no more of a file than max_bytes allows" do
      expect { described_class.load("/dev/zero", max_bytes: 1000) }
        .to raise_error(MemprofilerPprof::ProfileError, %r{\A/dev/zero: has more than 1000 bytes})
    end

    it "accepts a profile of exactly the allowed size" do
      size = Zlib.gunzip(bytes).bytesize
      expect(described_class.load(bytes, max_bytes: size)).to eq(profile)
      expect { described_class.load(bytes, max_bytes: size - 1) }.to raise_error(MemprofilerPprof::ProfileError)
    end

    it "says which sources it takes" do
      expect { described_class.load(3) }.to raise_error(TypeError, /a file name, an IO or the bytes .* got 3/)
      expect { described_class.load(bytes, max_bytes: 0) }.to raise_error(ArgumentError, /in 1\.\.4294967295, got 0/)
      expect { described_class.load(bytes, max_bytes: "1") }.to raise_error(TypeError, /must be an Integer, got "1"/)
    end

    it "lets other threads run" do
      ticks = 0
      ticker = Thread.new { loop { (ticks += 1) && sleep(0.001) } }
      large = Zlib.gzip("\x32\x00".b + ("\x32\x01a".b * 5_000_000), level: 1)
      # Others may use the CPUs meanwhile; but while this thread has the GVL, the ticker never ticks that often.
      wait_until(what: "ticking during one load") do
        before = ticks
        described_class.load(large)
        ticks - before > 10
      end
    ensure
      ticker.kill
    end
  end

  describe ".load_each" do
    it "reads all of them, in order" do
      all = Array.new(12) { |number| number.odd? ? bytes : StringIO.new(profile.tag(class: /Kept/).to_pprof) }
      expect(described_class.load_each(all).map(&:to_s).each_slice(2).to_a.uniq)
        .to eq([[profile.tag(class: /Kept/), profile].map(&:to_s)])
    end

    it "holds no more than a few at a time" do
      read = 0
      sources = Enumerator.new { |all| 50.times { (read += 1) && (all << bytes) } }
      ahead = described_class.load_each(sources).with_index(1).map { |_, taken| read - taken }
      expect(ahead.max).to be <= 4
    end

    it "raises the error of the first invalid source, and stops" do
      read = 0
      sources = Enumerator.new { |all| [bytes, "a\0", 3, *([bytes] * 50)].each { |one| (read += 1) && (all << one) } }
      taken = []
      expect { described_class.load_each(sources) { |each| taken << each } }
        .to raise_error(MemprofilerPprof::ProfileError, /profile of 2 bytes/)
      expect([taken, read]).to match([[profile], be < 10])
    end

    it "reads several at a time" do
      reader, writer = IO.pipe(binmode: true)
      # The first can only be read to its end once the second has been opened.
      sources = Enumerator.new { |all| all << reader << bytes.tap { writer.write(bytes) && writer.close } }
      expect(Timeout.timeout(60) { described_class.load_each(sources).to_a }).to eq([profile, profile])
    ensure
      reader.close
    end

    it "leaves no thread behind when its block is left" do
      before = Thread.list
      reader, writer = IO.pipe
      described_class.load_each([bytes, reader, reader]) { break }
      expect(Thread.list - before).to be_empty
    ensure
      [reader, writer].each(&:close)
    end

    it "says which sources it takes" do
      expect { described_class.load_each(3) }.to raise_error(TypeError, /sources must be enumerable, got 3/)
      expect { described_class.load_each([bytes], max_bytes: 0).to_a }.to raise_error(ArgumentError, /got 0/)
    end
  end

  it "has the figures of the profile's header" do
    expect(profile).to have_attributes(
      sample_types: decoded.sample_types.map { |type| have_attributes(name: type.type, unit: type.unit) },
      default_sample_type: have_attributes(name: "retained_size", unit: "bytes"), comments: decoded.comments,
      time: Time.at(0, decoded.time_nanos, :nanosecond), duration: decoded.duration_nanos / 1e9,
      period: 1, period_type: have_attributes(to_s: "allocations/count"), difference?: false
    )
  end

  it "has no time if the profile has none" do
    raw = "\x32\x00\x32\x01a\x0a\x04\x08\x01\x10\x01".b
    expect(described_class.load(raw)).to have_attributes(time: nil, period_type: nil, comments: [], duration: 0.0)
  end

  it "has the samples of the profile" do
    mine = profile.samples.map { |sample| [sample.stack.map(&:to_a), sample.labels, sample.values] }
    theirs = decoded.samples.map do |sample|
      [sample.frames.map { |frame| frame.to_a.first(4) }, sample.labels, sample.values.values]
    end
    expect(mine).to match_array(theirs)
    expect(profile.samples.size).to eq(theirs.size)
  end

  it "has numeric labels as Integers" do
    data = new_collector(sample_rate: 1.0, object_age: true).profile { kept << KnownProgram.keep }
    expect(data.profile.samples.map { |sample| sample.labels["gc_age"] }).to all(be_an(Integer))
  end

  it "is frozen, and so are its parts" do
    sample = profile.samples.first
    parts = [profile, sample, sample.values, sample.stack, sample.stack.first, sample.labels, profile.comments,
             profile.sample_types, profile.total, profile.top.first, profile.tree, profile.tree.children]
    expect(parts).to all(be_frozen)
    expect { profile.dup }.to raise_error(TypeError)
  end

  it "comes from a flush, too" do
    flushed = data
    expect(flushed.profile).to eq(described_class.load(flushed.pprof_data))
  end

  describe "#==" do
    it "compares contents, not their order" do
      reordered = described_class.merge([profile.tag(class: /Other/), profile.tag(class: /Kept/)])
      expect(reordered.samples.to_a).to match_array(profile.tag(class: /Other|Kept/).samples.to_a)
      expect(described_class.load(profile.to_pprof)).to eq(profile)
    end

    it "is false for anything else" do
      expect([profile == profile.tag(class: /Kept/), profile == 3, profile == profile.diff(profile)]).to eq([false] * 3)
    end
  end

  describe "estimates" do
    it "are exact if everything was sampled" do
      kept = profile.top(by: :class, type: :retained_objects).find { |site| site.name.end_with?("Kept") }
      expect(kept.flat).to have_attributes(value: 40, low: 40.0, high: 40.0, samples: 40.0, variance: 0.0,
                                           low_confidence?: false, to_s: "40 (40..40)")
    end

    it "have an interval around what was sampled" do
      profile = data(0.5).profile.tag(class: /Kept/)
      objects = profile.total(:retained_objects)
      margin = 1.96 * Math.sqrt(objects.value)
      expect(objects).to have_attributes(samples: objects.value / 2.0, variance: objects.value.to_f,
                                         low: be_within(1e-6).of([objects.value - margin, 0].max),
                                         high: be_within(1e-6).of(objects.value + margin))
    end

    it "warn about small numbers of samples" do
      estimate = ->(samples) { described_class::Estimate.of([100, 9.0, samples], false) }
      expect([9.9, 10.0].map { |samples| estimate.call(samples).low_confidence? }).to eq([true, false])
    end

    it "are not below zero, except for a change" do
      expect([true, false].map { |signed| described_class::Estimate.of([1, 100.0, 1.0], signed).low })
        .to eq([1 - 19.6, 0.0])
    end

    it "have no interval if the profile lacks the sampling rate" do
      raw = "\x32\x00\x32\x01a\x0a\x04\x08\x01\x10\x01\x12\x03\x12\x01\x07".b
      expect(described_class.load(raw).total)
        .to have_attributes(value: 7, low: nil, high: nil, samples: nil, low_confidence?: false, to_s: "7")
    end

    it "use the current rate, not the previous one" do
      expect(data(0.5).profile.comments).to include("greatest_weight=2")
    end
  end

  describe "#top" do
    it "adds up by class" do
      expect(classes(profile)).to eq("Kept" => 40, "Other" => 5)
    end

    it "adds up by method, counting recursion once" do
      site = profile.tag(class: /Kept/).top(type: :retained_objects, sort: :cumulative)
                    .find { |each| each.name == "KnownProgram#keep" || each.name == "KnownProgram.keep" }
      expect(site).to have_attributes(file: __FILE__, cumulative: have_attributes(value: 40))
    end

    it "adds up by line, with the method that contains the line" do
      site = profile.tag(class: /Other/).top(by: :line, type: :retained_objects).first
      line = File.readlines(__FILE__).index { |text| text.include?("Array.new(5)") } + 1
      expect(site).to have_attributes(name: "#{__FILE__}:#{line}", line: line, function: match(/Program[.#]other/),
                                      flat: have_attributes(value: 5))
    end

    it "adds up by file and gem" do
      kept = profile.tag(class: /Kept/)
      expect(kept.top(by: :file, type: :retained_objects).first)
        .to have_attributes(name: __FILE__, flat: have_attributes(value: 40))
      expect(kept.top(by: :gem, type: :retained_objects, sort: :cumulative).map(&:name)).to include("app")
    end

    it "lists the greatest first, and no more than the limit" do
      values = profile.top(type: :retained_objects, sort: :cumulative).map { |site| site.cumulative.value }
      expect(values).to eq(values.sort.reverse)
      expect(profile.top(limit: 2)).to eq(profile.top.first(2))
    end

    it "says which arguments are allowed" do
      expect { profile.top(by: :size) }.to raise_error(ArgumentError, /by must be one of :method, .*, got :size/)
      expect { profile.top(sort: "flat") }.to raise_error(ArgumentError, /sort must be one of :flat, :cumulative, got/)
      expect { profile.top(type: :x) }.to raise_error(ArgumentError, /type must be one of allocations, .*, got :x/)
    end
  end

  describe "#tree" do
    def names(node)
      [node.name, node.children.map { |child| names(child) }]
    end

    it "has calls below their callers, and classes below those" do
      tree = profile.tag(class: /Other/).tree(type: :retained_objects, classes: true)
      path = []
      node = tree
      path << (node = node.children.first) while node.children.any?
      expect(path.map(&:name)).to end_with("KnownProgram::Other").and include(/other/)
      expect([tree, *path].map { |each| each.cumulative.value }).to all(eq(5))
      expect(tree.name).to eq("total")
    end

    it "leaves out what is too small or too deep" do
      expect(profile.tree(depth: 1).children.flat_map(&:children)).to eq([])
      tree = profile.tag(class: /Kept|Other/).tree(by: :class, type: :retained_objects, min: 0.5)
      expect(tree.children.map { |node| node.cumulative.value }).to eq([40])
    end

    it "says which arguments are allowed" do
      expect { profile.tree(min: 2) }.to raise_error(ArgumentError, /min must be in 0\.\.1, got 2/)
      expect { profile.tree(depth: -1) }.to raise_error(ArgumentError, /depth must be .* got -1/)
    end
  end

  describe "filters" do
    it "keep stacks that match a pattern, or that do not" do
      expect(classes(profile.focus(/\bother\z/))).to eq("Other" => 5)
      expect(classes(profile.ignore(/\bother\z/))).to eq("Kept" => 40)
      expect(classes(profile.focus(/#{File.basename(__FILE__)}/))).to eq(classes(profile))
      expect { profile.focus("other") }.to raise_error(TypeError, /pattern must be a Regexp, got "other"/)
    end

    it "keep samples with certain labels" do
      filters = [/Other\z/, "KnownProgram::Other", ->(name) { name.end_with?("Other") }]
      expect(filters.map { |filter| classes(profile.tag(class: filter)) }).to all(eq("Other" => 5))
      expect(profile.tag("class" => /Other/, no: /./).samples.to_a).to eq([])
    end

    it "match numbers" do
      GC.start
      data = new_collector(sample_rate: 1.0, object_age: true).profile do
        kept << KnownProgram.keep
        GC.start
        kept << KnownProgram.other
      end
      expect(classes(data.profile.tag(gc_age: 1..))).to eq("Kept" => 40)
      expect(classes(data.profile.tag(gc_age: /\A0\z/))).to eq("Other" => 5)
    end
  end

  describe "#merge" do
    it "adds profiles up" do
      expect(classes(profile.merge(profile, profile))).to eq("Kept" => 120, "Other" => 15)
      expect(described_class.merge([profile])).to eq(profile)
    end

    it "refuses profiles of another kind, and names them" do
      other = new_collector(sample_type_names: :go).profile { nil }.profile
      expect { profile.merge(profile, other) }
        .to raise_error(MemprofilerPprof::ProfileError, %r{\Aprofile 3 .* its sample types are alloc_objects/count})
      expect { described_class.merge([]) }.to raise_error(ArgumentError, /at least one/)
      expect { profile.merge(3) }.to raise_error(TypeError, /expected a MemprofilerPprof::Profile, got 3/)
    end
  end

  describe "#diff" do
    it "shows what grew and what shrank" do
      grown = profile.merge(profile.tag(class: /Kept/)).ignore(/\bother\z/)
      difference = grown.diff(profile)
      expect(classes(difference)).to eq("Kept" => 40, "Other" => -5)
      expect(difference).to be_difference
    end

    it "of equal profiles is empty" do
      expect(profile.diff(profile)).to have_attributes(top: [], total: have_attributes(value: 0))
    end
  end

  describe "#write" do
    it "writes pprof that can be read back, also by other tools", :go do
      Tempfile.create do |file|
        expect(profile.write(file.path)).to eq(File.size(file.path))
        expect(described_class.load(file.path)).to eq(profile)
      end
      again = Pprof.decode(profile.to_pprof)
      expect(Pprof::Rules.violations(again)).to eq([])
      expect(again.samples).to match_array(decoded.samples)
      expect(Pprof::GoPprof.run(profile.merge(profile).to_pprof, "-top", "-sample_index=retained_objects"))
        .to have_attributes(success?: true, stderr: "", stdout: match(/Program[.#]keep/))
    end

    it "creates files that only their owner can read" do
      Dir.mktmpdir do |directory|
        profile.write(File.join(directory, "x"))
        expect(File.stat(File.join(directory, "x")).mode & 0o777).to eq(0o600)
      end
    end

    it "writes differences as pprof", :go do
      difference = profile.ignore(/\bother\z/).diff(profile)
      result = Pprof::GoPprof.run(difference.to_pprof, "-top", "-sample_index=retained_objects")
      expect(result).to have_attributes(success?: true, stdout: match(/ -\d+ .*KnownProgram.other/))
    end

    it "writes to a Tempfile where it is, by its own descriptor" do
      Tempfile.open(binmode: true) do |file|
        file.write("before")
        size = profile.write(file)
        expect(file.tap(&:rewind).read).to eq("before#{profile.to_pprof}".b).and have_attributes(bytesize: size + 6)
      end
    end

    it "writes folded stacks to an IO, outermost frame first" do
      io = StringIO.new
      profile.tag(class: /Other\z/).write(io, format: :folded, type: :retained_objects)
      expect(io.string.lines.last).to match(/Program[.#]other;.* 5\n\z/)
    end

    it "writes all types for speedscope" do
      json = JSON.parse(profile.to_speedscope(name: "a \"b\""))
      expect(json).to include("$schema" => "https://www.speedscope.app/file-format-schema.json", "name" => 'a "b"',
                              "activeProfileIndex" => 3)
      frames = json["shared"]["frames"]
      objects = json["profiles"][2]
      expect(json["profiles"].map { |each| each["unit"] }).to eq(%w[none bytes none bytes])
      expect(objects["weights"].sum).to eq(objects["endValue"]).and eq(profile.total(:retained_objects).value)
      stack = objects["samples"].first.map { |number| frames[number].fetch("name") }
      expect(profile.samples.map { |sample| sample.stack.map(&:name).reverse }).to include(stack)
    end

    it "says that speedscope cannot show negative values" do
      difference = profile.ignore(/\bother\z/).diff(profile)
      expect { difference.to_speedscope }.to raise_error(MemprofilerPprof::ProfileError, /negative values/)
    end

    it "lists the known formats" do
      expect { profile.write(StringIO.new, format: :svg) }
        .to raise_error(ArgumentError, "format must be one of :pprof, :folded, :speedscope, got :svg")
    end
  end
end
