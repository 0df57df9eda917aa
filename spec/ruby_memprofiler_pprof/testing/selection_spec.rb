# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::Selection do
  def sample(class_name, *files)
    frames = files.map { |file| MemprofilerPprof::Profile::Frame.new("a", file, 1) }
    MemprofilerPprof::Testing::Sample.new(class_name, frames, {})
  end

  def selected(type, *names)
    described_class.new(type).of(names.map { |name| sample(name, "/app/a.rb") }).map(&:class_name)
  end

  let(:harness) { MemprofilerPprof::Testing::Measurement.method(:take).source_location.first }

  it "leaves out the VM's own objects" do
    expect(selected(nil, "String", "(IMEMO)", "(STRING)", "(anonymous Object)")).to eq(["String", "(anonymous Object)"])
  end

  it "takes a class with its subclasses" do
    expect(selected(StandardError, "ArgumentError", "StandardError", "Exception", "(anonymous KeyError)", "Gone"))
      .to eq(["ArgumentError", "StandardError", "(anonymous KeyError)"])
  end

  it "takes the classes that include a module" do
    expect(selected(Enumerable, "Array", "String")).to eq(["Array"])
  end

  it "takes a class whose constant is gone, with its subclasses", :aggregate_failures do
    base = stub_const("Base", Class.new)
    sub = stub_const("Sub", Class.new(base))
    hide_const("Base")
    hide_const("Sub")
    expect([base, sub].map { |type| selected(type, "Base", "Sub", "Other") }).to eq([%w[Base Sub], %w[Sub]])
  end

  it "takes a class whose constant is another class by now" do
    old = stub_const("Old", Class.new(StandardError))
    stub_const("Old", Class.new)
    expect(selected(StandardError, "Old")).to eq(["Old"])
    expect(selected(old, "Old")).to eq(["Old"])
  end

  it "takes one class by its name" do
    expect(selected("(IMEMO)", "Array", "(IMEMO)")).to eq(["(IMEMO)"])
  end

  it "takes a class whose method name is its own" do
    named = stub_const("Named", Class.new)
    %i[name to_s <= superclass].each { |name| named.define_singleton_method(name) { |_| raise } }
    expect(selected(named, "Named", "String")).to eq(["Named"])
    expect(described_class.new(named).to_s).to eq(" of Named")
  end

  it "refuses what is not a class, or has no name", :aggregate_failures do
    expect { described_class.new(1) }
      .to raise_error(TypeError, "of must be a class, a module or the name of a class, got 1")
    expect { described_class.new(Class.new) }.to raise_error(ArgumentError, /\Aof must be a class with a name/)
  end

  it "cuts stacks off where the harness begins" do
    samples = described_class.new.of([sample("A", "/app/a.rb", "/app/b.rb", harness, "/app/c.rb")])
    expect(samples.first.frames.map(&:file)).to eq(%w[/app/a.rb /app/b.rb])
  end

  it "leaves out what the harness or a test framework allocates" do
    files = [harness, RSpec::Core::Example.instance_method(:run).source_location.first,
             "/app/lib/rspec/core/example.rb"]
    expect(described_class.new.of(files.map { |file| sample("Array", file, "/app/a.rb") }).map { _1.frames.first.file })
      .to eq(["/app/lib/rspec/core/example.rb"])
  end
end
