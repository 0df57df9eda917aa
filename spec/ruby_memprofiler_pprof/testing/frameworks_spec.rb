# frozen_string_literal: true

require "pathname"
require "ruby_memprofiler_pprof/testing"
require "set"
require "stringio"

RSpec.describe MemprofilerPprof::Testing::Frameworks do
  subject(:frameworks) { described_class.new }

  let(:core) { RSpec::Core::Example.instance_method(:run).source_location.first }
  let(:mocks) { RSpec::Mocks::MessageExpectation.instance_method(:and_call_original).source_location.first }
  let(:matchers) { RSpec::Matchers::BuiltIn::Change.instance_method(:matches?).source_location.first }

  def own(class_name, *files)
    files.map { |file| frameworks.own?(class_name, file) }
  end

  it "own what they allocate of Ruby's classes, and of theirs" do
    names = %w[String Thread::Mutex Set StringIO Pathname (IMEMO) RSpec::Mocks::Double Minitest::Test Diff::LCS::Change]
    names << "(anonymous RSpec::Core::ExampleGroup)"
    expect(names.reject { |name| own(name, core, mocks) == [true, true] }).to eq([])
  end

  it "do not own objects of the program's classes that they make for it" do
    stub_const("Kept", Class.new)
    names = ["Kept", "Kept::Inner", "Gone", "(anonymous Kept)", "(anonymous Object)", "#<Module:0x00001>::Kept"]
    expect(names.reject { |name| own(name, core, mocks) == [false, false] }).to eq([])
  end

  it "own the copies that matchers make" do
    stub_const("Kept", Class.new)
    expect(own("Kept", matchers)).to eq([true])
  end

  it "are known by where they were loaded from" do
    directory = File.dirname(core)
    expect(own("String", "/app/lib/minitest/plugin.rb", "/app/lib/rspec/support/x.rb", "/app/lib/rspec/core.rb",
               "#{directory}_extensions.rb")).to eq([false] * 4)
    expect(own("String", "#{directory}.rb")).to eq([true])
  end

  it "load nothing to find out" do
    Object.autoload(:NotLoadedYet, "/nowhere/not_loaded_yet.rb")
    expect(own("NotLoadedYet", core)).to eq([false])
    expect(Object.autoload?(:NotLoadedYet)).to eq("/nowhere/not_loaded_yet.rb")
  ensure
    Object.send(:remove_const, :NotLoadedYet)
  end
end
