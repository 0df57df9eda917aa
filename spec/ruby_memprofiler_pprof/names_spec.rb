# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::Collector, "names", :liveness, :moving, :jit, :threads do
  # Ruby's own backtrace as Ruby 3.4 would show it: without what older versions say about rescue and ensure bodies.
  def locations
    Names.locations.reject.with_index do |_, index|
      index.positive? && Names.locations[index - 1].label.start_with?("rescue in ", "ensure in ")
    end
  end

  # File and line of each frame; C functions and the VM's own Ruby code are at their callers' places.
  def places
    locations.each_index.map do |index|
      own = locations.drop(index).find { |location| !location.path.to_s.start_with?("<internal:") }
      "#{own.absolute_path || own.path || "<cfunc>"}:#{own.lineno}"
    end.join("\n")
  end

  # The frames of the only stack in which the scenario allocated, from Names.mark outwards.
  def frames_of(definition, call)
    profile = Dir.mktmpdir do |directory|
      file = File.join(File.realpath(directory), "scenario.rb")
      File.write(file, "module App\n  #{definition}\n  Names.run do\n    #{call}\n  end\nend\n")
      profile_of { load(file) }
    end
    samples = profile.samples.select { |sample| sample.labels["class"] == "Names::Marker" }
    expect(samples.map { |sample| sample.names.drop(1) }.uniq.size).to eq(1)
    samples.first.frames.drop(1)
  end

  after do
    Object.send(:remove_const, :App) if Object.const_defined?(:App)
    Object.send(:remove_method, :at_top) if Object.private_method_defined?(:at_top)
  end

  Names.scenarios.each do |description, (definition, call, names)|
    it "are those of Ruby 3.4 for #{description}" do
      frames = frames_of(definition, call)
      expect(frames.map(&:name).first(names.size + 1)).to eq(["Names.mark", *names])
    end

    it "have the places of Ruby's backtrace for #{description}" do
      frames = frames_of(definition, call)
      expect(frames.map { |frame| "#{frame.file}:#{frame.line}" }.join("\n")).to eq(places)
    end

    # Backtraces do not know the name of a method defined by define_method.
    next if RUBY_VERSION < "3.4" || definition.include?("define_")

    it "equal the labels of this Ruby's backtrace for #{description}" do
      frames = frames_of(definition, call)
      labels = locations.map(&:label).first(names.size + 1)
      expect(frames.map(&:name).first(names.size + 1)).to eq(labels)
    end
  end

  describe "of frames that are recognised" do
    before { stub_const("Marker", Class.new) }

    # How many objects the block allocates below the innermost function with such a name, by name.
    def allocations(pattern, &)
      samples = profile_of(&).samples.select { |sample| sample.labels["class"] == "Marker" }
      samples.each_with_object(Hash.new(0)) do |sample, counts|
        counts[sample.names.filter_map { |name| name[pattern] }.first] += sample[:allocations]
      end
    end

    it "are those of the methods around blocks that run the same code" do
      stub_const("Makers", Module.new)
      code = proc { -> { Marker.new } }
      blocks = %i[made_here made_there].map do |name|
        Makers.define_singleton_method(name, &code)
        Makers.public_send(name)
      end
      counts = allocations(/made_\w+/) { 100.times { blocks.each { |block| block.call } } } # rubocop:disable Style/SymbolProc
      expect(counts).to eq("made_here" => 100, "made_there" => 100)
    end

    # Leave different program counters where the frame of a C function comes next: compiled code does not change them.
    def here(number) = number.then { nil }
    def there(number) = number.tap { number.to_s && nil }

    def call(collection, number)
      number.even? ? here(number) : there(number)
      collection.count { Marker.new }
    end

    it "are those of C functions that are called in the same place" do
      collections = [[1], { a: 1 }]
      # Until it is compiled.
      2000.times { |number| call(collections[number % 2], number / 2) }
      counts = allocations(/\w+#count/) { 200.times { |number| call(collections[number % 2], number / 2) } }
      expect(counts).to eq("Array#count" => 100, "Enumerable#count" => 100)
    end

    it "are those of a C function where a block of it ran before" do
      method = -> { Marker.new }.method(:call)
      turns = [[method.to_proc, :call], [method, :to_proc]]
      profile = profile_of { turns.cycle(100) { |receiver, name| receiver.public_send(name) } }
      procs = profile.samples.select { |sample| sample.labels["class"] == "Proc" }
      expect(procs.select { |sample| sample.names.include?("Method#to_proc") }.sum { |sample| sample[:allocations] })
        .to eq(100)
    end
  end
end
