# frozen_string_literal: true

begin
  require "ruby_memprofiler_pprof/minitest"
rescue LoadError
  # The examples report that.
  nil
end

RSpec.describe "MemprofilerPprof::Minitest", :liveness do
  include_context "with the testing engine"

  before do
    skip "the gem minitest cannot be loaded" unless defined?(MemprofilerPprof::Minitest)
    stub_const("Kept", Class.new)
  end

  let!(:list) { [] }
  let(:test) { Class.new(Minitest::Test).new("test") }

  def failure
    yield
    nil
  rescue Minitest::Assertion => e
    e.message
  end

  it "refute_leaks passes if nothing leaks" do
    expect(failure { test.refute_leaks { Kept.new } }).to be_nil
  end

  it "refute_leaks fails if something leaks" do
    expect(failure { test.refute_leaks("Oh no") { list << Kept.new } })
      .to match(/\AOh no\.?\nExpected the block not to leak objects, but each call leaves 1 .*: Kept\n.*^profile: /m)
  end

  it "ends with a name that can be copied" do
    messages = [failure { test.refute_leaks { list << Kept.new } },
                failure { test.assert_retains_at_most(0) { list << Kept.new } }]
    expect(messages).to all(match(/\.pprof\z/))
  end

  it "refute_leaks has options" do
    expect(failure { test.refute_leaks(of: Hash, iterations: 20, warm_up: 1, tolerating: 1) { list << Kept.new } })
      .to be_nil
  end

  it "assert_leaks is its opposite", :aggregate_failures do
    expect(failure { test.assert_leaks { list << Kept.new } }).to be_nil
    expect(failure { test.assert_leaks { Kept.new } })
      .to match(/\AExpected the block to leak objects, but calls do not/)
  end

  it "assert_retains_at_most limits objects", :aggregate_failures do
    expect(failure { test.assert_retains_at_most(1) { list << Kept.new } }).to be_nil
    expect(failure { test.assert_retains_at_most(0) { list << Kept.new } })
      .to match(/\AExpected the block to retain at most 0 objects, but it retains 1 object\n\n  1 object, .*: Kept\n/)
  end

  it "assert_retains_at_most limits bytes, and objects of a class", :aggregate_failures do
    expect(failure { test.assert_retains_at_most(bytes: 40) { list << Kept.new } }).to be_nil
    expect(failure { test.assert_retains_at_most(9, bytes: 39) { list << Kept.new } })
      .to match(/39 bytes, but it retains 40/)
    expect(failure { test.assert_retains_at_most(0, of: Hash) { list << Kept.new } }).to be_nil
  end

  it "assert_retains_at_most can warm up" do
    expect(failure { test.assert_retains_at_most(0, warm_up: 1) { list[0] ||= Kept.new } }).to be_nil
  end

  it "assert_allocates_at_most limits what is allocated", :aggregate_failures do
    expect(failure { test.assert_allocates_at_most(1) { Kept.new } }).to be_nil
    expect(failure { test.assert_allocates_at_most(0) { Kept.new } })
      .to match(/allocate at most 0 objects, but it allocates 1 object/)
  end

  it "does not count what an assertion in the block takes" do
    expect(failure { test.assert_allocates_at_most(0) { test.assert_retains_at_most(0) { 1 } } }).to be_nil
  end

  it "knows what Minitest's own code is" do
    file = Minitest.method(:run).source_location.first
    frameworks = MemprofilerPprof::Testing::Frameworks.new
    expect(%w[String Kept].map { |name| frameworks.own?(name, file) }).to eq([true, false])
  end

  it "counts assertions" do
    test.assert_retains_at_most(1, bytes: 1000) { list << Kept.new }
    test.refute_leaks(iterations: 20) { 1 }
    expect(test.assertions).to eq(3)
  end

  it "says what is missing", :aggregate_failures do
    expect { test.assert_retains_at_most { 1 } }
      .to raise_error(ArgumentError, "a number of objects, or bytes:, is needed")
    expect { test.assert_retains_at_most(1) }.to raise_error(ArgumentError, "a block is needed")
    expect { test.refute_leaks }.to raise_error(ArgumentError, "a block is needed")
  end

  it "takes no class for a message", :aggregate_failures do
    error = "the message must not be a class, got Kept: write of: Kept"
    expect { test.refute_leaks(Kept) { 1 } }.to raise_error(ArgumentError, error)
    expect { test.assert_allocates_at_most(1, Kept) { 1 } }.to raise_error(ArgumentError, error)
  end

  it "works under Minitest itself" do
    outcome = run_minitest(<<~RUBY)
      class MemoryTest < Minitest::Test
        def test_passes = assert_retains_at_most(1) { Leaky.keep(1) }
        def test_fails = refute_leaks(of: Leaky) { Leaky.keep(1) }
      end
    RUBY
    expect(outcome.stdout)
      .to match(/MemoryTest#test_fails .*Expected the block not to leak objects of Leaky.*2 runs, 2 assertions/m)
  end
end
