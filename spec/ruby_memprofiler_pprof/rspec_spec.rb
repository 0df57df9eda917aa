# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/rspec"

RSpec.describe MemprofilerPprof::RSpec, :liveness, :threads do
  include_context "with the testing engine"

  before { stub_const("Kept", Class.new) }

  let!(:list) { [] }
  let(:failure) { RSpec::Expectations::ExpectationNotMetError }

  def message
    yield
    raise "it did not fail"
  rescue failure => e
    e.message
  end

  describe "leak_objects" do
    it "finds a leak" do
      expect { list << Kept.new }.to leak_objects
    end

    it "finds none if there is none" do
      expect { Kept.new }.not_to leak_objects
    end

    it "finds a leak of objects that RSpec makes for the program" do
      allow(Kept).to receive(:new).and_call_original
      expect { list << Kept.new }.to leak_objects
    end

    it "has options" do
      expect { list << Kept.new }.not_to leak_objects.of(String).tolerating(1).warm_up(1).iterations(20)
    end

    it "says what leaked from where, and saves a profile" do
      text = message { expect { list << Kept.new }.not_to leak_objects.of(Kept) }
      expect(text).to match(/\Aexpected the block not to leak objects of Kept, but each call leaves 1 object behind \(/)
      expect(text)
        .to match(/^  [\d,]+ objects \(1\.00 per call\), [\d.,]+ [KM]iB: Kept\n    spec.*_spec.rb:#{__LINE__ - 3} in /)
      path = text[/^profile: (.*)$/, 1]
      expect(path).to eq(File.join(directory, "saved.pprof"))
      calls = text[/^the last ([\d,]+) calls left$/, 1].delete(",").to_i
      expect(Pprof.decode(File.binread(path)).by_class["Kept"]).to eq(calls)
    end

    it "reports what it saw if a leak was expected" do
      expect(message { expect { Kept.new }.to leak_objects.iterations(20) })
        .to match(/\Aexpected the block to leak objects, but calls do not keep .* \(20 calls in 5 batches, .*: 0 0 0 0/)
    end

    it "reports the last block that it was given" do
      matcher = leak_objects.iterations(20)
      leaks = [-> { list << +"" }, -> { list << Kept.new }]
      texts = leaks.map { |leak| message { expect(&leak).not_to matcher } }
      expect(texts).to match([/: String$/, /: Kept$/])
    end

    it "describes itself" do
      expect(leak_objects.of(String).description).to eq("leak objects of String")
    end

    it "refuses a value expectation" do
      expect { leak_objects.matches?(1) }.to raise_error(ArgumentError, /needs a block: write expect { … }/)
    end

    it "cannot be combined", :aggregate_failures do
      [
        -> { leak_objects.and(raise_error(ArgumentError)) },
        -> { expect { list << 1 }.to change(list, :size).and(leak_objects) },
        -> { expect { raise "x" }.to raise_error("x").or(leak_objects) },
        -> { expect { list << 1 }.to retain_at_most(1).objects.and(leak_objects) },
        -> { expect { list << 1 }.to change(list, :size).and(change(list, :hash) & leak_objects) }
      ].each { |code| expect(&code).to raise_error(NotImplementedError, /write a separate expectation/) }
    end
  end

  describe "retain_at_most and allocate_at_most" do
    it "pass up to their limit" do
      expect { list << Kept.new << Kept.new }.to retain_at_most(2).objects.and allocate_at_most(2).objects
    end

    it "count bytes" do
      expect { list << ("x" * 10_000) }.to retain_at_most(10_100).bytes.and allocate_at_most(10_100).bytes
    end

    it "count objects of a class" do
      expect { list << Kept.new << [] << {} }.to retain_at_most(1).objects.of(Kept).and allocate_at_most(1).of(Hash)
    end

    it "call the block once" do
      expect { list << 1 }.to retain_at_most(10).objects.and allocate_at_most(10).objects
      expect(list.size).to eq(1)
    end

    it "call it before on request" do
      expect { list.empty? ? list << Kept.new : nil }.to retain_at_most(0).objects.warm_up(1)
    end

    it "say what was retained and what was allowed" do
      expect(message { expect { 3.times { list << Kept.new } }.to retain_at_most(2).objects })
        .to match(/\Aexpected the block to retain at most 2 objects, but it retains 3 objects\n\n  3 objects, .*: Kept/)
    end

    it "say what was allocated and what was allowed" do
      expect(message { expect { ("x" * 30_000) && nil }.to allocate_at_most(20_000).bytes.of(String) })
        .to match(/\Aexpected the block to allocate at most 20,000 bytes of String, but it allocates 30,0\d\d bytes
\n  1 object/)
    end

    it "say exactly how many bytes there were" do
      expect(message { expect { ("x" * 3_000_000) && nil }.to allocate_at_most(3_000_000).bytes })
        .to match(/\Aexpected the block to allocate at most 3,000,000 bytes, but it allocates 3,000,\d{3} bytes$/)
    end

    it "save a profile of what they count" do
      { retain_at_most(0).objects => :retained_objects, allocate_at_most(0).objects => :allocations }
        .each do |matcher, value|
        text = message { expect { list << Kept.new }.to matcher }
        path, arguments = text.match(/^profile: (.*)\n +go tool pprof (.*)/).captures
        expect(Pprof.decode(File.binread(path)).by_class(value)["Kept"]).to eq(1)
        expect(arguments).to eq("-sample_index=#{value} -traces #{path}")
      end
    end

    it "say why there is no profile" do
      File.write(File.join(directory, "file"), "")
      MemprofilerPprof::Testing.profile_pattern = File.join(directory, "file", "a.pprof")
      expect(message { expect { list << Kept.new }.to retain_at_most(0).objects }).to match(/^profile: not saved: \S/)
    end

    it "say for each part of a compound what was wrong" do
      expect(message { expect { list << Kept.new }.to retain_at_most(0).objects.and allocate_at_most(1).bytes })
        .to match(/to retain at most 0 objects and allocate at most 1 byte, but it retains 1 .*^and it allocates 40/m)
    end

    it "can be combined with or" do
      expect { list << Kept.new }.to retain_at_most(0).objects.or allocate_at_most(1).objects
      expect(message { expect { list << Kept.new }.to retain_at_most(0).objects | allocate_at_most(0).objects })
        .to match(/to retain at most 0 objects or allocate/)
    end

    it "can be combined with other matchers", :aggregate_failures do
      expect { list << Kept.new }.to change(list, :size).by(1).and retain_at_most(1).objects.of(Kept)
      expect { raise ArgumentError }.to raise_error(ArgumentError).and retain_at_most(0).objects.of(Kept)
    end

    it "can be combined with other matchers when they warm up, in any order", :aggregate_failures do
      bound = retain_at_most(1).objects.of(Kept).warm_up(3)
      expect { list << Kept.new }.to change(list, :size).by(1).and(bound)
      expect { list << Kept.new }.to bound.and(change(list, :size).by(1))
      expect { list << Kept.new }.to bound.or(change(list, :size).by(0))
      expect { (list << Kept.new) && raise("x") }.to bound.and raise_error("x")
    end

    it "do not count what judging another one takes" do
      expect { list << 1 }
        .to retain_at_most(0).objects.and(change(list, :size).by(1)).and(allocate_at_most(0).objects)
    end

    it "count objects of the program's classes that RSpec makes for it" do
      allow(Kept).to receive(:new).and_call_original
      group = RSpec::Core::ExampleGroup.describe(Kept).new
      expect(message { expect { Kept.new }.to allocate_at_most(0).of(Kept) }).to match(/allocates 1 object$/)
      expect(message { expect { group.subject }.to allocate_at_most(0).objects }).to match(/1 object, .*: Kept$/)
    end

    it "do not count the copies that RSpec's matchers make" do
      items = stub_const("Items", Class.new(Array)).new
      expect { expect { items.push(1) }.to(change { items }) }.to allocate_at_most(0).of(Items)
    end

    it "do not count what a check in the block takes", :aggregate_failures do
      expect { expect { 1 }.to retain_at_most(0).objects }.to allocate_at_most(0).objects
      expect { expect { 1 }.not_to leak_objects.iterations(20) }.to allocate_at_most(0).objects
      expect { expect { list << Kept.new }.to leak_objects.iterations(20) }.to allocate_at_most(0).of(Struct)
    end

    it "do not count what the failure of a check in the block takes" do
      { allocate_at_most(0).objects => File, leak_objects.iterations(20) => Struct }.each do |matcher, type|
        matcher.matches?(-> { Kept.new })
        expect { matcher.failure_message }.to allocate_at_most(0).of(type)
      end
    end

    it "report the last block that they were given" do
      matcher = allocate_at_most(0).objects
      texts = [-> { +"" }, -> { Kept.new }].map { |block| message { expect(&block).to matcher } }
      expect(texts).to match([/: String$/, /: Kept$/])
    end

    it "require a unit" do
      expect { expect { 1 }.to retain_at_most(3) }
        .to raise_error(ArgumentError, /\Aretain_at_most\(3\) needs a unit: write retain_at_most\(3\)\.objects or/)
    end

    it "require a number from 0", :aggregate_failures do
      expect { expect { 1 }.to retain_at_most(-1).objects }.to raise_error(ArgumentError, /\Aobjects must be a finite/)
      expect do
        expect do
          1
        end.to retain_at_most("1").bytes
      end.to raise_error(TypeError, /\Abytes must be a number, got "1"/)
    end

    it "require a block" do
      expect { retain_at_most(1).bytes.matches?(1) }.to raise_error(ArgumentError, /needs a block: write expect { … }/)
    end

    it "cannot be negated, and say what to write instead", :aggregate_failures do
      expect { expect { 1 }.not_to retain_at_most(1).objects }
        .to raise_error(NotImplementedError, /Write what is allowed: `expect { … }\.to retain_at_most\(n\)\.objects`/)
      expect { expect { 1 }.not_to allocate_at_most(1).bytes }
        .to raise_error(NotImplementedError, /`expect { … }\.to allocate_at_most\(n\)\.bytes`/)
      expect { expect { 1 }.not_to allocate_at_most(1).bytes.and(retain_at_most(1).objects) }
        .to raise_error(NotImplementedError, /\.to allocate_at_most\(n\)\.bytes\.and retain_at_most\(n\)\.objects`/)
    end
  end

  describe "metadata" do
    # How many examples failed, and the output.
    def run(code, *arguments, **options, &)
      outcome = run_rspec("RSpec.describe 'Group' do\n#{code}end\n", *arguments, **options, &)
      [outcome.stdout[/(\d+) failure/, 1].to_i, outcome.stdout]
    end

    it "retains_at_most: limits what an example leaves behind", :aggregate_failures do
      failures, output = run(<<~RUBY)
        it("fails", retains_at_most: 0) { Leaky.keep(1) }
        it("passes", retains_at_most: 1) { Leaky.keep(1) }
        it("fails", retains_at_most: { bytes: 39 }) { Leaky.keep(1) }
        it("passes", retains_at_most: { bytes: 39, of: String }) { Leaky.keep(1) }
        it("passes", retains_at_most: false) { Leaky.keep(1) }
      RUBY
      expect(failures).to eq(2), output
      expect(output).to match(/expected the example to retain at most 0 objects, but it retains 1 object\n\s+1 obj/)
      expect(output).to match(/Failure.*it\("fails", retains_at_most: 0\)/)
      expect(output).to include("# ./memory_test.rb:11")
    end

    it "allocates_at_most: limits what an example allocates" do
      failures, output = run(<<~RUBY)
        it("fails", allocates_at_most: 9) { Array.new(10) { Leaky.new } }
        it("passes", allocates_at_most: 11) { Array.new(10) { Leaky.new } }
      RUBY
      expect(failures).to eq(1), output
    end

    it "does not count what belongs to the example itself" do
      failures, output = run(<<~RUBY)
        let(:value) { Leaky.new }
        before { @before = Leaky.new }
        it "passes", retains_at_most: 0 do
          @variable = value
          expect(value).to be_a(Leaky)
          allow(value).to receive(:hash).and_return(1)
          value.hash
        end
      RUBY
      expect(failures).to eq(0), output
    end

    it "does not count the new value of a variable that its group has set" do
      failures, output = run(<<~RUBY)
        before(:context) { @variable = nil }
        it("passes", retains_at_most: 0, no_leaks: true) { @variable = Leaky.new }
      RUBY
      expect(failures).to eq(0), output
    end

    it "leaves the variables that its group has set as they were" do
      failures, output = run(<<~RUBY)
        before(:context) { @variable = 1 }
        it("passes", no_leaks: true) { expect(@variable += 1).to eq(2) }
      RUBY
      expect(failures).to eq(0), output
    end

    it "counts what hooks leave behind" do
      failures, output = run(<<~RUBY)
        after { Leaky.keep(1) }
        it("fails", retains_at_most: 0) {}
      RUBY
      expect(failures).to eq(1), output
    end

    it "no_leaks: true runs the example repeatedly", :aggregate_failures do
      failures, output = run(<<~RUBY)
        let(:value) { +"a" }
        it("fails", no_leaks: true) { Leaky.keep(value) }
        it("passes", no_leaks: true) { LEAK[0] = value }
        it("passes", no_leaks: { of: String, iterations: 20, warm_up: 1, tolerating: 0 }) { Leaky.keep(value) }
        it("passes", no_leaks: false) { Leaky.keep(value) }
      RUBY
      expect(failures).to eq(1), output
      expect(output).to match(/expected the example not to leak objects, but each call leaves 1 object behind/)
      expect(output).to include("# ./memory_test.rb:12")
    end

    it "leaves other failures as they are", :aggregate_failures do
      failures, output = run(<<~RUBY)
        it("fails", no_leaks: true, retains_at_most: 0) { Leaky.keep(1) && expect(1).to(eq(2)) }
        it("fails when it runs again", no_leaks: true) { expect(LEAK << 1).to have_attributes(size: be < 5) }
        it("is pending", retains_at_most: 0) { pending; Leaky.keep(1); expect(1).to eq(2) }
        it("is skipped", retains_at_most: 0) { skip }
      RUBY
      expect(failures).to eq(2), output
      expect(output).to include("expected: 2", "to have attributes", "4 examples, 2 failures, 2 pending")
      expect(output).not_to include("expected the example")
    end

    it "refuses unknown keys" do
      _, output = run("it('fails', retains_at_most: { object: 1 }) { 1 }\nit('fails', no_leaks: { off: 1 }) { 1 }\n")
      expect(output).to include("retains_at_most has the unknown key :object, allowed are objects, bytes, of",
                                "no_leaks has the unknown key :off, allowed are warm_up, iterations, tolerating, of")
    end

    it "refuses to check for leaks if that is neither true, false nor options" do
      _, output = run("it('fails', no_leaks: 'junk') { 1 }\n")
      expect(output).to include('no_leaks must be true, false or a Hash of options, got "junk"')
    end

    it "refuses limits without a number" do
      _, output = run("it('fails', retains_at_most: { of: String }) { 1 }\nit('fails', allocates_at_most: {}) { 1 }\n")
      expect(output).to include("retains_at_most: a number of objects, or bytes:, is needed",
                                "allocates_at_most: a number of objects, or bytes:, is needed")
    end

    it ":memprofiler saves a profile, and says where" do
      run("it('keeps', :memprofiler) { Leaky.keep(1) }\n") do |folder, outcome|
        path = outcome.stdout[%r{\n\./memory_test\.rb:11 Group keeps\nprofile: (tmp/profiles/test-.*\.pprof)\n}, 1]
        profile = Pprof.decode(File.binread(File.join(folder, path.to_s)))
        expect(%i[allocations retained_objects].map { |value| profile.by_class(value)["Leaky"] }).to eq([1, 1])
      end
    end
  end

  describe "the ranking" do
    let(:code) do
      <<~RUBY
        RSpec.describe("Group") do
          it("keeps little") { LEAK << ("x" * 20_000) }
          it("keeps much") { LEAK << ("x" * 50_000) }
          it("needs much") { "x" * 100_000 }
        end
      RUBY
    end

    def lists(text)
      text.scan(/^Top .*:$\n(?:  .*\n\s+# .*\n)+/)
    end

    it "lists at the end which examples retained and allocated most", :aggregate_failures do
      outcome = run_rspec("MemprofilerPprof::RSpec.rank_examples(top: 2)\n#{code}", "--format", "documentation")
      retained, allocated = lists(outcome.stdout[/3 examples, 0 failures.*/m])
      expect(retained).to match(/\ATop 2 examples of 3 by memory retained afterwards:
 +48.9 KiB +1 object  Group keeps much\n +# .*:13
 +19.6 KiB +1 object  Group keeps little\n +# .*:12\n\z/)
      expect(allocated).to match(/\ATop 2 examples of 3 by memory allocated:\n +97.7 KiB .*much\n.*:14\n +48.9 KiB .*/)
    end

    it "lists no examples that contributed nothing" do
      outcome = run_rspec("MemprofilerPprof::RSpec.rank_examples\nRSpec.describe { it('is') { +'a' } }\n")
      expect(outcome.stdout).to match(/^None of 1 has memory retained afterwards\.\n\nTop 1 example of 1 by memory a/)
    end

    it "can be enabled by the environment alone" do
      outcome = run_rspec(code, env: { described_class::RANK_VARIABLE => "1" })
      expect(lists(outcome.stdout)).to match([/Top 1 example of 3.*keeps much/m, /Top 1 example of 3.*needs much/m])
    end

    it "is printed once, and as the suite says, if the environment enables it, too" do
      outcome = run_rspec("MemprofilerPprof::RSpec.rank_examples(top: 2)\n#{code}",
                          env: { described_class::RANK_VARIABLE => "1" })
      titles = ["Top 2 examples of 3 by memory retained", "Top 2 examples of 3 by memory allocated"]
      expect(outcome.stdout.scan(/^.* memory (?:retained|allocated)/)).to eq(titles)
    end

    it "treats an empty variable as unset" do
      outcome = run_rspec(code, env: { described_class::RANK_VARIABLE => "" })
      expect(outcome.stdout).to include("3 examples, 0 failures")
      expect(outcome.stdout).not_to include("by memory")
    end

    it "refuses a wrong number" do
      %w[many 0].each do |text|
        outcome = run_rspec(code, env: { described_class::RANK_VARIABLE => text })
        error = "#{described_class::RANK_VARIABLE} must be an Integer from 1, got #{text.inspect}"
        expect(outcome.stdout).to include(error)
      end
    end

    it "does not disturb a machine-readable formatter" do
      outcome = run_rspec(code, "--format", "json", env: { described_class::RANK_VARIABLE => "1" })
      expect(JSON.parse(outcome.stdout)).to match(
        hash_including("messages" => [/Top 1 example of 3 by memory retained/],
                       "summary_line" => "3 examples, 0 failures")
      )
    end

    it "is not mistaken for a misspelt setting" do
      configuration = MemprofilerPprof::Configuration.from_env({ described_class::RANK_VARIABLE => "1" })
      expect(configuration.unknown).to eq([])
    end
  end

  it "is not loaded by the gem itself" do
    outcome = run_ruby("print $LOADED_FEATURES.grep(%r{ruby_memprofiler_pprof/(rspec|minitest|testing)}).size")
    expect(outcome.stdout).to eq("0")
  end
end
