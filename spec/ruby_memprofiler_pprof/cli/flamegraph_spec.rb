# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "memprofiler flamegraph" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def flamegraph(*arguments)
    run_command(*SubprocessHelpers::MEMPROFILER, "flamegraph", *arguments)
  end

  def profile(name, *calls, time: 1, types: Pprof::Maker::TYPES)
    maker = Pprof::Maker.new(time: time, types: types)
    calls.each { |stack, value, class_name| maker.sample(stack, [value] * types.size, class_name) }
    File.binwrite(name, maker.to_s)
  end

  def data(page)
    JSON.parse(page[%r{<script id="data" type="application/json">(.*?)</script>}m, 1])
  end

  before do
    profile("a.pprof", [["work /a.rb:1"], 2, "String"], [["rest /b.rb:1"], 3, "Array"])
    profile("b.pb.gz", [["work /a.rb:1"], 5, "String"], time: 2)
  end

  def strings(*options)
    data(flamegraph("a.pprof", *options, "-o", "-").stdout)["tree"]["strings"]
  end

  it "writes a single file, readable by its owner only" do
    outcome = flamegraph("a.pprof")
    expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["a.html\n", "", 0])
    expect(Dir.children(".").sort).to eq(%w[a.html a.pprof b.pb.gz])
    expect(File.stat("a.html").mode & 0o777).to eq(0o600)
  end

  it "names the page after a profile whose name is not in UTF-8" do
    profile("é\xFF.pprof", [["work /a.rb:1"], 2])
    expect(flamegraph("é\xFF.pprof").stdout.b).to eq("é\xFF.html\n".b)
    expect(File).to exist("é\xFF.html")
  end

  it "takes options before and after the files" do
    outcome = flamegraph("--title", "<T>", "b.pb.gz", "--output", "x.html", "--value", "allocations")
    expect(outcome.stdout).to eq("x.html\n")
    page = File.read("x.html")
    expect(page[%r{<title>(.*)</title>}, 1]).to eq("&lt;T&gt;")
    expect(data(page).slice("title", "type")).to eq("title" => "<T>", "type" => 0)
  end

  it "makes a series of several profiles, or of those in a directory" do
    flamegraph(".")
    flamegraph("b.pb.gz", "a.pprof")
    %w[a.html b.html].each do |file|
      expect(data(File.read(file))["profiles"].map { |profile| profile["name"] }).to eq(%w[a.pprof b.pb.gz])
    end
  end

  it "adds them up with --merge" do
    merged = data(flamegraph("a.pprof", "b.pb.gz", "--merge", "-o", "-").stdout)
    expect(merged["tree"]["values"].map { |columns| columns[0]["value"].sum }).to eq([10])
  end

  it "compares with --base" do
    compared = data(flamegraph("b.pb.gz", "--base", "a.pprof", "-o", "-").stdout)
    expect(compared).to include("base" => true, "title" => "b.pb.gz compared with a.pprof")
    expect(compared["profiles"].map { |profile| profile["name"] }).to eq(%w[a.pprof b.pb.gz])
  end

  it "filters" do
    expect(strings).to include("work", "rest")
    expect(strings("--focus", "^wo")).not_to include("rest")
    expect(strings("--ignore", "^wo")).not_to include("work")
    expect(strings("--tag", "class=String")).not_to include("Array")
    expect(strings("--tag", "class=/ray/")).not_to include("String")
  end

  it "groups by lines or files" do
    expect(strings("--by", "line")).to include("/a.rb:1")
    expect(strings("--by", "file")).not_to include("work")
  end

  it "combines small boxes" do
    expect(strings("--min", "50")).not_to include("work")
    expect(strings("--min", "30")).to include("work")
  end

  it "counts what gems allocate for the line that calls them with --app" do
    profile("a.pprof", [["work /a.rb:1", "Gem#call /gems/gem-1.0/a.rb:1"], 1])
    expect(strings).to include("Gem#call")
    expect(strings("--app")).not_to include("Gem#call")
  end

  describe "--open" do
    # A program that writes down its arguments.
    def opener(path, status = 0)
      File.write(path, "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >opened\nexit #{status}\n", perm: 0o755)
    end

    def flamegraph(*arguments, **env)
      env = { "BROWSER" => nil, "PATH" => Dir.pwd }.merge(env.transform_keys(&:to_s))
      run_command(*SubprocessHelpers::MEMPROFILER, "flamegraph", *arguments, env: env)
    end

    # What was called, and with what.
    def opened
      File.read("opened").lines(chomp: true)
    end

    it "opens the page as the platform does" do
      opener(name = RUBY_PLATFORM.include?("darwin") ? "open" : "xdg-open")
      outcome = flamegraph("a.pprof", "--open", "-o", "x y.html")
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq(["x y.html\n", "", 0])
      expect(opened).to eq([File.join(Dir.pwd, name), File.join(Dir.pwd, "x y.html")])
    end

    it "opens it in a directory that the locale does not know" do
      Dir.mkdir("Ä")
      opener("Ä/mine")
      Dir.chdir("Ä") { flamegraph("../a.pprof", "--open", "-o", "ö.html", BROWSER: "mine", LC_ALL: "C") }
      expect(File.read("Ä/opened").lines(chomp: true).last).to eq(File.join(Dir.pwd, "Ä/ö.html"))
    end

    it "opens it with the first command of $BROWSER that there is" do
      %w[mine xdg-open open].each { |name| opener(name) }
      flamegraph("a.pprof", "--open", BROWSER: "missing:mine --new-window:xdg-open")
      expect(opened).to eq([File.join(Dir.pwd, "mine"), "--new-window", File.join(Dir.pwd, "a.html")])
    end

    it "puts the name where $BROWSER wants it" do
      opener("mine")
      flamegraph("a.pprof", "--open", BROWSER: "mine --url=%s --private")
      expect(opened.drop(1)).to eq(["--url=#{File.join(Dir.pwd, "a.html")}", "--private"])
    end

    it "says what is wrong, and has written the page" do
      opener("mine", 3)
      page = Regexp.escape(File.join(Dir.pwd, "a.html"))
      { "mine" => /: mine could not open #{page}: .*exit 3\n/, "'" => /: BROWSER: Unmatched quote/i,
        "missing" => /: found nothing to open #{page} with: tried missing, (xdg-)?open; \$BROWSER can/ }
        .each do |browser, message|
        outcome = flamegraph("a.pprof", "--open", BROWSER: browser)
        expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to match(["a.html\n", message, 2])
      end
    end

    it "needs a file" do
      outcome = flamegraph("a.pprof", "--open", "-o", "-")
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["memprofiler: --open needs a file, not stdout\n", 2])
    end
  end

  it "names what it cannot read" do
    File.write("bad.pprof", "x")
    profile("other.pprof", [["a"], 1], types: [%w[samples count]])
    { ["none.pprof"] => [2, "none.pprof: No such file or directory"], ["bad.pprof"] => [2, "bad.pprof: "],
      ["a.pprof", "other.pprof"] => [2, "other.pprof cannot be shown with a.pprof: its sample types are"],
      ["a.pprof", "-o", "no/a.html"] => [2, "no/a.html: No such file or directory"],
      ["a.pprof", "--base", "none.pprof"] => [2, "none.pprof: No such file"],
      [] => [2, "no file named"], ["a.pprof", "--value", "x"] => [2, "--value must be one of allocations"],
      ["a.pprof", "--min", "101"] => [2, "invalid argument: --min 101.0, must be in 0..100"],
      ["a.pprof", "--tag", "x"] => [2, "invalid argument: --tag x, must be KEY=VALUE"] }
      .each do |arguments, (status, text)|
      outcome = flamegraph(*arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to match([status, /: #{Regexp.escape(text)}/])
    end
    expect(Dir.glob("*.html")).to eq([])
  end
end
