# frozen_string_literal: true

require "tmpdir"

RSpec.describe "MemprofilerPprof::Retainers" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:collector) { new_collector.start }
  let(:retainers) { RecordedRetainers.retainers }
  let(:type) { retainers.class }

  describe "Collector#retainers" do
    it "asks the extension, by default for ten sites, in a copy of the process, for a minute" do
      asked = RecordedRetainers.answer_of(collector)
      collector.retainers
      collector.retainers(site: "a.rb:1", class_name: "Foo", limit: 3, in_process: true, timeout: 1.5)
      expect(asked).to eq([[nil, nil, 10, false, 60], ["a.rb:1", "Foo", 3, true, 1.5]])
    end

    it "returns what that says" do
      RecordedRetainers.answer_of(collector)
      expect(collector.retainers.sites.map(&:name))
        .to eq([RecordedRetainers::SITE, "/srv/shop/app/models/audit.rb:7"])
    end

    it "passes a refusal on" do
      RecordedRetainers.answer_of(collector) { raise MemprofilerPprof::RetainersError, "other Ractors run" }
      expect { collector.retainers }.to raise_error(MemprofilerPprof::RetainersError, "other Ractors run")
    end

    { { site: 1 } => "site must be nil or a String, got 1",
      { site: "" } => 'site must be nil or a String that is not empty, got ""',
      { class_name: String } => "class_name must be nil or a String, got String",
      { limit: 0 } => "limit must be an Integer from 1, got 0",
      { limit: 1.5 } => "limit must be an Integer from 1, got 1.5",
      { in_process: nil } => "in_process must be one of true, false, got nil",
      { timeout: 0 } => "timeout must be a finite number of seconds above 0, got 0",
      { timeout: "1" } => 'timeout must be a number of seconds, got "1"' }.each do |options, message|
      it "refuses #{options}" do
        asked = RecordedRetainers.answer_of(collector)
        expect { collector.retainers(**options) }.to raise_error(StandardError, /\A#{Regexp.escape(message)}/) { |error|
          expect(error).to be_a(ArgumentError).or be_a(TypeError)
        }
        expect(asked).to eq([])
      end
    end

    it "is what a reader returns, too" do
      asked = RecordedRetainers.answer_of(collector)
      collector.open_reader { |reader| expect(reader.retainers(limit: 2).sites.size).to eq(2) }
      expect(asked).to eq([[nil, nil, 2, false, 60]])
    end

    it "is loaded only if somebody asks" do
      code = "collector = new_collector.start; collector.flush; " \
             "print $LOADED_FEATURES.grep(%r{pprof/(retainers/|retainers\\.rb|report)}).size, defined?(JSON).inspect"
      expect(run_ruby(code, options: %w[--disable-gems]).stdout).to eq("0nil")
    end
  end

  describe ".retainers of the module" do
    it "is that of the process's collector, and can be written" do
      outcome = run_ruby(<<~RUBY, chdir: Dir.pwd)
        require "#{File.expand_path("../support/retainers", __dir__)}"
        MemprofilerPprof.start
        RecordedRetainers.answer_of(MemprofilerPprof.collector)
        print MemprofilerPprof.retainers(out: "new/a.pprof", limit: 1).sites.size,
              File.binread("new/a.pprof") == RecordedRetainers.pprof
      RUBY
      expect(outcome.to_a.first(2)).to eq(%w[2true] + [""])
    end
  end

  it "says what was found in the whole heap" do
    expect(retainers).to have_attributes(
      objects: 1_017_129, bytes: 123_456_789, references: 2_345_678, samples: 149, unnamed_samples: 2, pid: 4711,
      time: Time.utc(2026, 11, 22, 21, 52, 13), pause: 0.004212345, held: nil, elapsed: 0.312, attempts: 1,
      in_process?: false, unreachable: have_attributes(samples: 3, objects: 300.0, bytes: 12_000.0)
    )
  end

  it "says for how long it held the GVL in the process itself" do
    expect(RecordedRetainers.retainers(in_process: true, held_nanoseconds: 500_000_000, pause_nanoseconds: nil))
      .to have_attributes(in_process?: true, held: 0.5, pause: nil)
  end

  it "does not need what is not known" do
    expect(type.new('{"sites": []}', ""))
      .to have_attributes(objects: nil, unreachable: nil, time: nil, pause: nil, in_process?: false, sites: [])
  end

  describe "a site" do
    subject(:site) { retainers.sites.first }

    it "has estimates with intervals" do
      expect(site.bytes).to be_a(MemprofilerPprof::Profile::Estimate)
        .and have_attributes(value: 36_570_000, low_confidence?: false)
      expect(site.objects.low...site.objects.high).to cover(13_400)
    end

    it "has a place, and the largest classes" do
      expect(site).to have_attributes(
        name: RecordedRetainers::SITE, file: "/srv/shop/app/services/product_card_cache.rb", line: 11,
        function: "ProductCardCache.fetch", samples: 134, unreachable_bytes: 0.0,
        classes: { "ActionView::OutputBuffer" => 35_840_000.0, "String" => 730_000.0 }
      )
    end

    it "has holders, with the chain to where the objects accumulate" do
      holder, = site.holders
      expect(holder).to have_attributes(share: 1.0, phrase: "ProductCardCache.@cards → Hash (6,724)", exclusive: true,
                                        folded: nil, retained: 40_760_000, also: [], alike: 1)
      expect(holder.chain.map(&:to_a))
        .to match([["ProductCardCache", nil, "ProductCardCache", nil, 40_770_000, :anchor, String, 5],
                   ["Hash", "@cards", "ProductCardCache.@cards → Hash", 6724, 40_760_000, :plain, nil, nil]])
      expect(holder.example.map(&:reference)).to eq(["{value}"])
    end
  end

  {
    { instance_variable: "@a" } => "@a", { class_variable: "@@a" } => "@@a", { global: "$a" } => "$a",
    { constant: { name: "A", file: "a.rb", line: 1 } } => "::A", { member: "a" } => ".a",
    { local: "a" } => "captures a",
    { thread_local: "a" } => "local a", { thread_variable: "a" } => "variable a", { method: "a" } => "#a",
    { value: "a" } => "[:a]", { value: nil } => "{value}", "key" => "{key}", "element" => "[element]",
    "default" => "{default}", "receiver" => "captures self", "superclass" => "superclass",
    "singleton" => "singleton class", "class" => "class", "finalizer" => "finalizer", "inside" => nil,
    "unknown" => nil, nil => nil, { of_the_future: "a" } => nil
  }.each do |edge, text|
    it "calls the reference #{edge.inspect} #{text.inspect}" do
      expect(references(edge)).to eq([nil, text, nil])
    end
  end

  # Those of a chain of two objects, and of an example.
  def references(edge, kind = "plain")
    link = { text: "A", edge: nil, phrase: "A", retained: 1, kind: kind }
    answer = RecordedRetainers.answer
    answer[:sites].first[:holders].first.update(chain: [link, { **link, edge: edge }], example: [link])
    holder = type.new(JSON.generate(answer), "").sites.first.holders.first
    [*holder.chain, *holder.example].map(&:reference)
  end

  it "calls what a thread's methods refer to local variables" do
    expect(references({ local: "a" }, "thread")).to eq([nil, "local variable a", nil])
    expect(references("receiver", "thread")).to eq([nil, "self", nil])
  end

  describe "in other forms" do
    it "is the extension's JSON" do
      expect(retainers.to_json).to eq(RecordedRetainers.json)
      expect(JSON.generate([retainers])).to eq("[#{RecordedRetainers.json}]")
    end

    it "is a profile of the paths" do
      profile = retainers.profile
      expect(profile.samples.first.stack.map(&:name))
        .to eq(["Hash → values → ActionView::OutputBuffer", "ProductCardCache.@cards → Hash", "ProductCardCache"])
      expect(profile.total.value).to eq(36_606_000)
    end

    it "is a file that only its owner can read" do
      expect(retainers.write("a.pprof")).to eq(File.size("a.pprof"))
      expect([File.binread("a.pprof"), File.stat("a.pprof").mode & 0o777]).to eq([retainers.pprof_data, 0o600])
    end

    it "is the text that `why` prints" do
      expect(retainers.to_s).to start_with("Process 4711, 2026-11-22 21:52:13 UTC\n").and include("@cards → Hash (6,7")
    end
  end

  describe ".load" do
    let(:loaded) { type.load(RecordedRetainers.pprof) }

    it "reads what was recorded" do
      expect(loaded).to have_attributes(pid: 4711, time: Time.utc(2026, 11, 22, 21, 52, 13), objects: nil, pause: nil)
      expect(loaded.sites.map { |site| [site.name, site.bytes.value, site.objects.value, site.samples] })
        .to eq([[RecordedRetainers::SITE, 36_570_000, 13_400, 134],
                ["/srv/shop/app/models/audit.rb:7", 36_000, 900, 9]])
      expect(loaded.sites.first).to have_attributes(file: "/srv/shop/app/services/product_card_cache.rb", line: 11)
    end

    it "has what refers to the objects as holders, which have no sizes" do
      holders = loaded.sites.last.holders
      expect(holders.map { |holder| [holder.share.round(2), holder.retained, holder.exclusive] })
        .to eq([[0.67, nil, nil], [0.33, nil, nil]])
      expect(holders.last.phrase).to eq('Thread "puma 003" local cache → Hash')
      expect(holders.last.example.map(&:phrase)).to eq(["Hash[:name] → String"])
      expect(holders.first.chain.map(&:file)).to eq(["/srv/shop/app/models/audit.rb"] * 2)
    end

    it "has an object to which nothing refers by itself" do
      maker = Pprof::Maker.new(types: RecordedRetainers::TYPES, comments: { kind: "retainers" })
      maker.sample([["$recent → Array", "", 0]], [1, 40], "Array", labels: { site: "a.rb:1" })
      expect(type.load(maker.to_s).sites.first.holders.first).to have_attributes(phrase: "$recent → Array", example: [])
    end

    it "has at most ten holders, as a process says, and nothing of what only that knew" do
      maker = Pprof::Maker.new(types: RecordedRetainers::TYPES, comments: { kind: "retainers" })
      12.times { |number| maker.sample([["$a#{number}", "", 0]], [1, 40], "Array", labels: { site: "a.rb:1" }) }
      site = type.load(maker.to_s).sites.first
      expect([site.holders.size, site.other_holders, site.other_holders_bytes, site.unreachable_bytes])
        .to eq([10, 2, 80.0, nil])
    end

    it "selects" do
      paths = ->(question) { type.load(RecordedRetainers.pprof, **question).sites.map(&:name) }
      audit = ["/srv/shop/app/models/audit.rb:7"]
      sites = ["audit.rb:7", "models/audit.rb", audit.first]
      expect(sites.map { |site| paths.call({ site: site }) }).to eq([audit] * 3)
      expect([{ site: "it.rb:7" }, { site: "audit.rb:70" }].map(&paths)).to eq([[], []])
      expect(paths.call({ class_name: "ActionView::OutputBuffer" })).to eq([RecordedRetainers::SITE])
      expect(paths.call({ limit: 1 })).to eq([RecordedRetainers::SITE])
    end

    it "writes what was selected" do
      part = type.load(RecordedRetainers.pprof, site: "audit.rb")
      expect(part.profile.total.value).to eq(36_000)
    end

    it "is JSON in the same form" do
      names = JSON.parse(loaded.to_json)["sites"].first.keys
      expect(RecordedRetainers.answer[:sites].first.keys.map(&:to_s)).to match_array(names | ["function"])
    end

    it "refuses any other profile" do
      expect { type.load(Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }).to_s) }
        .to raise_error(MemprofilerPprof::ProfileError, /not a profile of references/)
    end

    it "is what the gem's own tools read" do
      profile = MemprofilerPprof::Profile.load(RecordedRetainers.pprof)
      expect(profile.top(by: :method, sort: :cumulative, limit: 1).map(&:name)).to eq(["ProductCardCache"])
    end

    it "is what go tool pprof reads", :go do
      result = Pprof::GoPprof.run(RecordedRetainers.pprof, "-top", "-cum", "-tagfocus=site=#{RecordedRetainers::SITE}")
      expect(result.stdout).to match(/Type: retained_size.*ProductCardCache.@cards → Hash$/m), result.to_s
    end
  end
end
