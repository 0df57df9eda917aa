# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::ClassNames, :liveness do
  include_context "with the testing engine"

  let!(:base) { stub_const("Base", Class.new) }

  # How many objects of a type the block allocates.
  def count(type, &)
    measurement = MemprofilerPprof::Testing::Measurement.take(&)
    selection = MemprofilerPprof::Testing::Selection.new(type)
    selection.of(measurement.samples(:allocate)).sum { |sample| sample.values.fetch(:allocations) }
  end

  it "are those of a class and its subclasses, and of the anonymous ones below each" do
    stub_const("Sub", Class.new(base))
    expect(described_class.below(base).keys).to contain_exactly("Base", "(anonymous Base)", "Sub", "(anonymous Sub)")
  end

  it "are those of the classes that include a module" do
    auditable = stub_const("Auditable", Module.new)
    base.include(auditable)
    expect(described_class.below(auditable).keys).to contain_exactly("Base", "(anonymous Base)")
  end

  it "have one for anonymous classes with a module" do
    auditable = stub_const("Auditable", Module.new)
    anonymous = Class.new(base) { prepend auditable }
    expect(described_class.below(auditable)).to eq({ "(anonymous Base)" => true })
    expect(count(auditable) { anonymous.new }).to eq(1)
  end

  it "leave out single objects that a module extends" do
    auditable = stub_const("Auditable", Module.new)
    extended = base.new.extend(auditable)
    expect(described_class.below(auditable)).to eq({})
    expect(extended).to be_a(auditable)
  end

  it "are found for a class whose constant is gone" do
    hide_const("Base")
    expect(count(base) { base.new }).to eq(1)
  end

  it "are found for an anonymous class that is gone by then" do
    expect(count(base) { Class.new(base).new }).to eq(1)
  end

  it "are found for a class in an anonymous module" do
    inner = Module.new.const_set(:Inner, Class.new(base))
    expect([inner, base].map { |type| count(type) { inner.new } }).to eq([1, 1])
  end

  it "are found for a class with a temporary name", if: Module.method_defined?(:set_temporary_name) do
    fake = Class.new(base).set_temporary_name("fake<x>")
    expect([fake, base].map { |type| count(type) { fake.new } }).to eq([1, 1])
  end

  it "are found without loading what has such a name now" do
    reloaded = Object.const_set(:Reloaded, Class.new)
    Object.send(:remove_const, :Reloaded)
    Object.autoload(:Reloaded, "/nowhere/reloaded.rb")
    expect(count(reloaded) { reloaded.new }).to eq(1)
    expect(Object.autoload?(:Reloaded)).to eq("/nowhere/reloaded.rb")
  ensure
    Object.send(:remove_const, :Reloaded)
  end
end
