# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "memprofiler export" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def export(*arguments)
    run_command(*SubprocessHelpers::MEMPROFILER, "export", *arguments)
  end

  def profile(name, *calls, types: Pprof::Maker::TYPES)
    maker = Pprof::Maker.new(types: types)
    calls.each { |stack, value, class_name| maker.sample(stack, [value] * types.size, class_name) }
    File.binwrite(name, maker.to_s)
  end

  # The lines of what is written as folded stacks.
  def folded(*arguments)
    export("--format", "folded", "-o", "-", *arguments).stdout.lines(chomp: true).sort
  end

  before do
    profile("a.pprof", [["main /a.rb:9", "work /a.rb:1"], 2, "String"], [["rest /b.rb:1"], 3, "Array"])
    profile("b.pb.gz", [["main /a.rb:9", "work /a.rb:1"], 5, "String"])
  end

  it "writes a file for speedscope, readable by its owner only" do
    outcome = export("a.pprof")
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["a.speedscope.json\n", "", 0])
    expect(JSON.parse(File.read("a.speedscope.json"))).to include("name" => "a.pprof", "activeProfileIndex" => 3)
    expect(File.stat("a.speedscope.json").mode & 0o777).to eq(0o600)
  end

  it "replaces a file, as other commands do" do
    File.write("x.json", "before")
    export("a.pprof", "--output", "x.json")
    expect(JSON.parse(File.read("x.json"))).to include("shared")
  end

  it "writes folded stacks, outermost frame first" do
    expect(export("--format", "folded", "b.pb.gz").stdout).to eq("b.folded\n")
    expect(File.read("b.folded")).to eq("main;work 5\n")
  end

  it "writes the value that is asked for as folded stacks" do
    maker = Pprof::Maker.new(types: [%w[samples count], %w[cpu nanoseconds]])
    File.binwrite("cpu.pprof", maker.sample(["a"], [1, 10], nil).to_s)
    expect(%w[samples cpu].map { |value| folded("cpu.pprof", "--value", value) }).to eq([["a 1"], ["a 10"]])
  end

  it "writes pprof" do
    export("--format", "pprof", "--focus", "^work", "-o", "out.pprof", "a.pprof")
    expect(MemprofilerPprof::Profile.load("out.pprof"))
      .to eq(MemprofilerPprof::Profile.load("a.pprof").focus(/^work/))
  end

  it "adds several up, or those in a directory" do
    Dir.mkdir("d")
    %w[a.pprof b.pb.gz].each { |name| File.write("d/#{name}", File.binread(name)) }
    expect([folded("a.pprof", "b.pb.gz"), folded("d")]).to all(eq(["main;work 7", "rest 3"]))
    expect(JSON.parse(export("-o", "-", "d").stdout)["name"]).to eq("2 profiles")
  end

  it "filters" do
    expect(folded("a.pprof", "--ignore", "^rest")).to eq(["main;work 2"])
    expect(folded("a.pprof", "--tag", "class=Array")).to eq(["rest 3"])
  end

  it "counts what gems allocate for the line that calls them with --app" do
    profile("a.pprof", [["work /a.rb:1", "Gem#call /gems/gem-1.0/a.rb:1"], 1])
    expect([folded("a.pprof"), folded("a.pprof", "--app")]).to eq([["work;Gem#call 1"], ["work 1"]])
  end

  it "says so if nothing matches" do
    outcome = export("a.pprof", "--focus", "^other", "-o", "x.json")
    expect([outcome.stderr, outcome.status.exitstatus])
      .to eq(["memprofiler export: there is no sample to write\n", 0])
  end

  { "an unknown format" => [%w[a.pprof --format svg], "--format svg, must be pprof, folded or speedscope, see"],
    "a missing file" => [%w[none.pprof], "none.pprof: No such file or directory"],
    "a file that is no profile" => [%w[bad.pprof], "bad.pprof: "],
    "a missing directory" => [%w[a.pprof -o no/a.json], "no/a.json: No such file or directory"],
    "an unknown value" => [%w[a.pprof --format folded --value x], "--value must be one of allocations"],
    "a value where all are written" => [%w[a.pprof --value allocations], "--value needs --format folded"],
    "pprof without a name" => [%w[a.pprof --format pprof], "--format pprof needs --output"],
    "no file" => [[], "no file named"] }.each do |what, (arguments, message)|
    it "refuses #{what}" do
      File.write("bad.pprof", "x")
      before = Dir.children(".")
      outcome = export(*arguments)
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus])
        .to match(["", /\Amemprofiler: .*#{Regexp.escape(message)}/, 2])
      expect(Dir.children(".")).to match_array(before)
    end
  end
end
