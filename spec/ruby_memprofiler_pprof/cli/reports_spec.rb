# frozen_string_literal: true

require "io/console"
require "json"
require "pty"
require "tmpdir"

# `report`, `diff` and `leaks`, as a user runs them.
RSpec.describe "ruby_memprofiler_pprof, reading profiles" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def cli(*arguments, env: {}, **keywords)
    env = { "COLUMNS" => nil, "NO_COLOR" => nil }.merge(env)
    run_command(*SubprocessHelpers::MEMPROFILER, *arguments, env: env, **keywords)
  end

  # The output in a terminal with this many columns.
  def in_terminal(columns, *arguments, env: {})
    env = { "COLUMNS" => nil, "NO_COLOR" => nil, "TERM" => "xterm", "RUBYOPT" => nil }.merge(env)
    PTY.open do |terminal, slave|
      slave.winsize = [24, columns]
      pid = Process.spawn(env, *SubprocessHelpers::MEMPROFILER, *arguments, in: slave, out: slave, err: slave)
      slave.close
      read_all(terminal).tap { Process.wait(pid) }
    end
  end

  def read_all(terminal)
    text = +""
    loop { text << terminal.readpartial(4096) }
  rescue EOFError, Errno::EIO
    # The latter is how Linux reports that the other side is closed.
    text.gsub("\r\n", "\n")
  end

  def write(name, lines, **options)
    File.binwrite(name, Pprof::Maker.lines(lines, **options).to_s)
    name
  end

  # The only one.
  def section(*arguments)
    JSON.parse(cli(*arguments, "--format", "json").stdout).fetch("sections").first
  end

  def expect_failure(outcome, status, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: status), stdout: "", stderr: message)
  end

  let(:totals) do
    { pid: 7, started_at: 1.5, live_slots_at_start: 900, heap_live_slots: 3100, heap_bytes: 1_048_576,
      rss_bytes: 10_485_760, thinned_samples: 3 }
  end
  let(:file) do
    write("a.pprof", { "/srv/shop/a.rb:1" => [0, 2000], "/srv/shop/lib/b.rb:2" => [0, 50],
                       "/x/gems/rack-2.2.4/lib/rack.rb:3" => [0, 40] }, comments: totals)
  end

  describe "report" do
    def rows(*arguments, **keywords)
      cli("report", *arguments, **keywords).stdout.split("\n\n").last.lines.drop(1).map(&:chomp)
    end

    it "shows each figure with its interval" do
      expect(rows(file).first.split(/  +/))
        .to include("195 KiB", "170 KiB..221 KiB", "96%").and end_with("a.rb:1", "a#line1")
    end

    it "says where the memory was" do
      write("b.pprof", { "/a.rb:1" => [0, 9] }, comments: { pid: 7, **RecordedMemory.comments(RecordedMemory::QUICK) })
      expect(cli("report", "b.pprof").stdout.lines.first(3))
        .to eq(["b.pprof, 2001-09-09 01:46:40 UTC\n",
                "204 MiB resident, 213 MiB at most so far. Unexplained: 0.1%.\n",
                "Of that: VM and C libraries 74.2 MiB, objects 52.0 MiB, free slots 32.0 MiB, free in malloc " \
                "18.0 MiB, files 17.2 MiB, profiler 10.0 MiB.\n"])
      expect(section("report", "b.pprof")["totals"].first["memory"]).to include("rss_bytes" => 213_647_360)
      expect(cli("report", "b.pprof", "b.pprof").stdout).not_to include("resident")
    end

    it "says low confidence below ten samples" do
      expect(rows(file).map { |row| row.include?("low confidence") }).to eq([false, true, true])
    end

    it "shows what the profile explains, and what it does not" do
      expect(cli("report", file).stdout).to include(
        "Explains 204 KiB (178 KiB..230 KiB) of 10.0 MiB resident memory, " \
        "of which 1.00 MiB are the pages of Ruby's heap.",
        "Sees 2,090 of 3,100 objects; 900 existed before the profiler started.",
        "Lost: thinned samples 3. Figures are estimates."
      )
    end

    it "shows the peak of memory if that was notably more" do
      { 11_400_000 => false, 11_600_000 => true }.each do |peak, shown|
        write("peak.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }, comments: { **totals, peak_rss_bytes: peak })
        expect(cli("report", "peak.pprof").stdout.include?(" At its peak it was 11.1 MiB.")).to be(shown)
      end
    end

    it "says what sampling in windows can miss" do
      expect(cli("report", file).stdout).not_to include("windows")
      write("w.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }, windows: [1] * 16)
      expect(cli("report", "w.pprof").stdout).to include("Sampled in windows of time: what happens once,")
    end

    it "says what a profile lacks that was written without the GVL" do
      write("oom.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }, comments: { **totals, emergency: "written" })
      expect(cli("report", "oom.pprof").stdout).to include("Written while Ruby did not answer: it lacks allocations,")
      expect(cli("report", file).stdout).not_to include("did not answer")
    end

    it "says that much may be gone from a profile of the process's exit" do
      write("exit.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }, comments: { **totals, at_exit: "may be gone" })
      expect(cli("report", "exit.pprof").stdout).to include("Written at the process's exit: what threads,")
      expect(cli("report", file).stdout).not_to include("exit")
    end

    it "leaves out the file of the peak in a directory, unless there is nothing else" do
      Dir.mkdir("d")
      write("d/0.peak.pprof", { "/srv/shop/peak.rb:1" => [0, 2000] })
      expect(cli("report", "d").stdout).to include("peak.rb:1")
      write("d/0.pprof", { "/srv/shop/a.rb:1" => [0, 2000] })
      expect(cli("report", "d").stdout.scan(/(\w+)\.rb:1/).flatten.uniq).to eq(["a"])
    end

    it "says which files that were named it leaves out" do
      %w[0 0.peak 0.retainers].each { |name| write("#{name}.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }) }
      outcomes = [%w[0.pprof 0.peak.pprof], %w[0.pprof 0.peak.pprof 0.retainers.pprof], %w[.], %w[0.peak.pprof]]
                 .map { |files| cli("report", *files).stderr }
      expect(outcomes)
        .to eq(["memprofiler report: left out 0.peak.pprof: peaks and references are not added to other profiles\n",
                "memprofiler report: left out 2 files: peaks and references are not added to other profiles\n", "", ""])
    end

    it "takes no figures of one process for those of a sum" do
      File.binwrite("sum.pprof", MemprofilerPprof::Profile.load(file).then { |one| one.merge(one) }.to_pprof)
      expect(section("report", "sum.pprof")["totals"].first).to include("pid" => nil, "rss_bytes" => nil)
      expect(cli("report", "sum.pprof").stdout).not_to match(/Explains|Sees|Lost/)
    end

    it "adds profiles up" do
      write("b.pprof", { "/srv/shop/a.rb:1" => [0, 2000] })
      json = JSON.parse(cli("report", "--value", "retained_objects", file, "b.pprof", "--json").stdout)
      expect(json.dig("sections", 0, "findings", 0, "flat", "value")).to eq(4000)
    end

    it "says so if several are of the same process, and not of those that do not say theirs" do
      notes = lambda do |comments|
        2.times { |index| write("#{index}.pprof", { "/a.rb:1" => [0, 9] }, comments: comments) }
        section("report", "0.pprof", "1.pprof")["notes"].map { |note| note["code"] }
      end
      expect([{ pid: 7, started_at: 1.5 }, {}].map(&notes)).to eq([["SAME_PROCESS"], []])
    end

    it "does not say so of allocations, which are those of separate intervals" do
      2.times { |index| write("#{index}.pprof", { "/a.rb:1" => [9, 9] }, comments: { pid: 7 }) }
      notes = lambda do |value|
        section("report", "--value", value, "0.pprof", "1.pprof")["notes"].map { |note| note["code"] }
      end
      expect(%w[retained_size allocations_size].map(&notes)).to eq([["SAME_PROCESS"], []])
    end

    describe "with tags" do
      before do
        { "1.1" => 2000, "1.2" => 3000 }.each do |release, bytes|
          comments = { pid: 7, "tag.release": release, "tag.region": "eu" }
          write("#{release}.pprof", { "/srv/shop/a.rb:1" => [0, bytes] }, comments: comments)
        end
        write("none.pprof", { "/srv/shop/a.rb:1" => [0, 9] }, comments: { pid: 8 })
      end

      it "shows which ones all profiles share, and which differ" do
        text = cli("report", "1.1.pprof", "1.2.pprof").stdout
        expect(text).to match(/\A2 profiles, .*, region=eu\nThey differ in release: --by-tag release shows each/)
      end

      it "shows each value separately" do
        text = cli("report", "--by-tag", "release", ".").stdout
        expect(text.scan(/^== .*/)).to eq(["== release=1.1 ==", "== release=1.2 ==", "== without release =="])
        json = JSON.parse(cli("report", "--by-tag", "release", "--json", ".").stdout)
        expect(json["sections"].map { |section| [section["tag"], section["inputs"]] })
          .to eq([[{ "release" => "1.1" }, ["./1.1.pprof"]], [{ "release" => "1.2" }, ["./1.2.pprof"]],
                  [{ "release" => nil }, ["./none.pprof"]]])
      end

      it "lists the tags if there is none of that name" do
        expect_failure(cli("report", "--by-tag", "relase", "."), 2,
                       /no profile has the tag relase; they have the tags region, release/)
      end
    end

    it "takes the profiles of a directory" do
      file
      expect(cli("report", ".").stdout).to start_with("./a.pprof, 2001-09-09")
    end

    it "does not treat names of existing files and directories as patterns" do
      Dir.mkdir("[a]")
      File.rename(file, "[a]/heap[1].pprof")
      write("heap1.pprof", { "/srv/shop/a.rb:1" => [0, 2000] })
      File.symlink("[a]/heap[1].pprof", "heap[1].pprof")
      expect(%w[[a] heap[1].pprof].map { |name| cli("report", name).stdout[/\A[^,]*/] })
        .to eq(%w([a]/heap[1].pprof heap[1].pprof))
    end

    %w[method line file gem class].each do |by|
      it "adds up by #{by}" do
        expect(section("report", "--by", by, file)["by"]).to eq(by)
      end
    end

    it "filters, sorts and limits" do
      expect(rows("--focus", "rack", file).size).to eq(1)
      expect(rows("--ignore", "rack", file).size).to eq(2)
      expect(rows("--limit", "1", "--sort", "cumulative", file).size).to eq(1)
    end

    it "filters by label" do
      write("old.pprof", { "/a.rb:1" => [0, 500] }, age: 8)
      expect(rows("--tag", "gc_age=8", "old.pprof").size).to eq(1)
      expect(rows("--tag", "gc_age=/^8$/x", "old.pprof").size).to eq(1)
      expect(rows("--tag", "gc_age=/^[1-7]/", "old.pprof")).to eq([])
    end

    it "filters by all of several labels, also of one name" do
      maker = Pprof::Maker.new
      %w[AB A B].each { |name| maker.sample(["#{name} /srv/#{name}.rb:1"], [0, 0, 500, 50_000], name) }
      File.binwrite("classes.pprof", maker.to_s)
      names = section("report", "--tag", "class=/A/", "--tag", "class=/B/", "classes.pprof")["findings"]
              .map { |finding| finding["name"] }
      expect(names).to eq(["/srv/AB.rb:1"])
    end

    it "says that nothing matches" do
      expect(cli("report", "--tag", "class=Foo", file).stdout).to include("\nNo sample matches.\nretained_size: 0 B ")
      codes = [section("report", "--focus", "nowhere", "--tree", file), section("report", "--focus", "rack", file)]
              .map { |section| section["notes"].map { |note| note["code"] }.grep("NO_MATCH") }
      expect(codes).to eq([["NO_MATCH"], []])
    end

    [%w[diff], %w[leaks --exit-code]].each do |command, *options|
      it "says so in #{command}, too" do
        comments = { pid: 7, started_at: 1.5 }
        2.times do |index|
          profile = Pprof::Maker.lines({ "/a.rb:1" => [0, 50] }, time: 100 + index, comments: comments)
          File.binwrite("#{index}.pprof", profile.to_s)
        end
        expect(%w[a.rb Typo].map { |pattern| cli(command, *options, "--focus", pattern, "0.pprof", "1.pprof").stdout })
          .to match([satisfy { |text| !text.include?("No sample matches.") }, include("\nNo sample matches.\n")])
      end
    end

    it "shows a tree" do
      expect(rows("--tree", file).first).to match(/100% +total/)
    end

    it "prints JSON with whole names and numbers" do
      section = section("report", file)
      expect(section["findings"].first)
        .to include("code" => "SITE", "name" => "/srv/shop/a.rb:1", "line" => 1, "file" => "/srv/shop/a.rb")
      expect(section["findings"].first["flat"]).to include("value" => 200_000, "low_confidence" => false)
      expect(section["totals"].first).to include("rss_bytes" => 10_485_760, "unseen_objects" => 1010)
    end

    it "prints Markdown within the size that was asked for" do
      write("many.pprof", Array.new(40) { |index| ["/srv/shop/a.rb:#{index + 1}", [0, 100]] }.to_h)
      markdown = cli("report", "--format", "markdown", "--max-bytes", "1500", "many.pprof").stdout
      expect(markdown.bytesize).to be_between(1200, 1500)
      expect(markdown).to start_with("# memprofiler report\n").and match(/^Left out .* 1500 bytes: \d+ findings\.\n\z/)
    end

    it "fits into a narrow terminal" do
      text = in_terminal(60, "report", file)
      table = text.split("\n\n").last.gsub(/\e\[\d+m/, "").lines.map(&:chomp)
      expect(table.map(&:size).max).to be <= 60
      expect(table[1]).to match(/195 KiB +170 KiB\.\.221 KiB +a\.rb:1/)
    end

    it "goes by COLUMNS" do
      expect(rows(file, env: { "COLUMNS" => "60" }).map(&:size).max).to be <= 60
    end

    it "uses colours in a terminal, unless disabled" do
      expect(in_terminal(100, "report", file)).to include("\e[1m")
      expect(in_terminal(100, "report", file, env: { "NO_COLOR" => "1" })).not_to include("\e[")
      expect(in_terminal(100, "report", file, env: { "TERM" => "dumb" })).not_to include("\e[")
      expect(cli("report", file).stdout).not_to include("\e[")
    end

    it "names a missing file" do
      expect_failure(cli("report", "none.pprof"), 2, "memprofiler: none.pprof: No such file or directory\n")
    end

    it "names a broken file" do
      File.binwrite("broken.pprof", File.binread(file)[0...-7])
      expect_failure(cli("report", file, "broken.pprof"), 2, /: broken\.pprof: not a valid pprof profile: byte/)
    end

    it "refuses what is no regular expression, and takes one with options", :aggregate_failures do
      expect(rows("--focus", "/RACK/i", file).size).to eq(1)
      expect_failure(cli("report", "--focus", "(", file), 2,
                     "memprofiler: invalid argument: --focus (: end pattern with unmatched parenthesis: /(/, " \
                     "see memprofiler report --help\n")
      expect_failure(cli("report", "--ignore", "/(/i", file), 2, %r{invalid argument: --ignore /\(/i: end pattern})
    end

    it "refuses a regular expression that is not UTF-8, in which names are" do
      expect_failure(cli("report", "--focus", "\xff", file), 2, /invalid argument: --focus "\\xFF": not UTF-8, see/)
      expect_failure(cli("report", "--ignore", "/\xff/i", file), 2, %r{argument: --ignore "/\\xFF/i": not UTF-8, see})
      expect_failure(cli("report", "--tag", "class=/\xff/", file), 2, %r{argument: --tag "/\\xFF/": not UTF-8, see})
    end

    it "refuses meaningless options" do
      Dir.mkdir("empty")
      expect_failure(cli("report", "empty"), 2, /no profiles found, see memprofiler report --help/)
      expect_failure(cli("report", "--by", "foo", file), 2, /--by foo/)
      expect_failure(cli("report", "--value", "foo", file), 2, /--value must be one of allocations, .*, got "foo"/)
      expect_failure(cli("report", "--tag", "foo", file), 2, /foo, must be KEY=VALUE/)
      expect_failure(cli("report", "--tree", "--min", "500", file), 2, /--min 500, must be in 0\.\.100, see/)
      expect_failure(cli("report", "--min", "5", file), 2, /--min needs --tree/)
      expect_failure(cli("report", "--tree", "--limit", "5", file), 2, /--limit is not for --tree, which has --min/)
      expect_failure(cli("report", "--limit", "-1", file), 2, /--limit -1, must be in 0\.\.1000000, see/)
      expect_failure(cli("report", "--format", "xml", file), 2, /--format xml/)
      expect_failure(cli("report", "--max-bytes", "9000", file), 2, /--max-bytes needs --format markdown/)
      expect_failure(cli("report", "--format", "markdown", "--max-bytes", "9", file), 2, /--max-bytes 9, must be at/)
    end
  end

  describe "with a profile that has commands to the terminal in it" do
    before do
      line = { key: "un\e[2Jknown", bytes: 1, source: "ex\eact", note: "\e[2J" }
      limit = { bytes: 1, usage_bytes: 1, kind: "\e[2J" }
      memory = RecordedMemory.json(lines: [*RecordedMemory.lines, line], limit: limit, allocator: "glibc\e[2J",
                                   held_slots: [{ site: "/a\e[2J.rb:1", bytes: 3e7, objects: 9.0 }])
      comments = { pid: 7, "tag.release": "1\e[2J\n2", "tag.attached_at": "\e[2J", memory: memory }
      2.times do |index|
        types = [["allocations\e[2J", "count"], ["allocations_size", "bytes\e[2J"], *Pprof::Maker::TYPES.last(2)]
        maker = Pprof::Maker.new(types: types, time: 1_000_000_000 + index, comments: comments)
        File.binwrite("#{index}.pprof", maker.sample(["a\e[2J /a\e[2J.rb:1"], [index + 1] * 4, "A\e[2J").to_s)
      end
    end

    [["report", "0.pprof"], ["report", "--value", "allocations\e[2J", "0.pprof"], ["report", "--tree", "0.pprof"],
     ["report", "--by-tag", "release", "."], ["diff", "--value", "allocations\e[2J", "0.pprof", "1.pprof"],
     ["leaks", "."], ["memory", "0.pprof"], ["memory", "--format", "markdown", "0.pprof"]].each do |arguments|
      it "prints none of them for #{arguments.join(" ").inspect}" do
        outcome = cli(*arguments)
        expect(outcome).to be_success
        expect(outcome.stdout).not_to match(/[[:cntrl:]&&[^\n]]/)
      end
    end
  end

  describe "diff" do
    let(:grown) do
      write("b.pprof", { "/srv/shop/a.rb:1" => [0, 2900], "/srv/shop/lib/b.rb:2" => [0, 50] }, time: 1_000_000_900)
    end

    it "shows what changed, how certain that is, and what the new profile explains" do
      outcome = cli("diff", file, grown, "--limit", "1")
      expect(outcome.stdout).to start_with("a.pprof -> b.pprof, 900 s later\n")
      expect(outcome.stdout.lines.last.split(/  +/)).to include("+87.9 KiB", ">99.9%", "195 KiB", "283 KiB")
    end

    it "says which profile is the older one" do
      expect(cli("diff", grown, file).stdout).to start_with("b.pprof -> a.pprof, 900 s earlier\n")
    end

    it "says which parts of the memory have changed" do
      { "a" => {}, "b" => { free_slots: 52 } }.each do |name, mebibytes|
        write("#{name}.pprof", { "/a.rb:1" => [0, 9] }, comments: { pid: 7, **RecordedMemory.comments(mebibytes) })
      end
      expect(cli("diff", "a.pprof", "b.pprof").stdout)
        .to include("\nResident memory since the old profile: +20.0 MiB (free slots +20.0 MiB).\n")
    end

    it "says so if nothing has changed" do
      expect(cli("diff", file, file).stdout).to include("retained_size: +0 B in all, and no change anywhere\n")
    end

    it "says so if the processes differ" do
      expect(cli("diff", file, grown).stdout).to include("These are of different processes")
      expect(cli("diff", file, file).stdout).not_to include("different processes")
    end

    it "says what the old profile lacks that was written without the GVL" do
      write("oom.pprof", { "/srv/shop/a.rb:1" => [0, 2000] }, comments: { **totals, emergency: "written" })
      expect(cli("diff", "oom.pprof", file).stdout).to match(/^The old profile was written while Ruby did not answer: /)
      expect(cli("diff", file, file).stdout).not_to include("did not answer")
    end

    it "compares with the peak if that is named" do
      write("b.peak.pprof", { "/srv/shop/a.rb:1" => [0, 2900] })
      expect(cli("diff", file, "b.peak.pprof").stdout).to start_with("a.pprof -> b.peak.pprof")
    end

    it "says that references cannot be compared with other profiles" do
      write("b.retainers.pprof", { "/a.rb:1" => [0, 9] }, comments: { kind: "retainers" })
      [[file, "b.retainers.pprof"], ["b.retainers.pprof", file]].each do |files|
        expect_failure(cli("diff", *files), 2, /: b\.retainers\.pprof has references, which cannot be compared with/)
      end
    end

    it "says so if values of intervals of different lengths are compared" do
      { 31 => false, 60 => true }.each do |duration, told|
        [["short", 30], ["long", duration]].each do |name, seconds|
          write("#{name}.pprof", { "/srv/shop/a.rb:1" => [2000, 2000] }, duration: seconds)
        end
        notes = %w[allocations retained_size].map do |value|
          section("diff", "--value", value, "short.pprof", "long.pprof")["notes"].map { |note| note["code"] }
        end
        expect(notes).to eq([told ? ["DIFFERENT_INTERVALS"] : [], []])
      end
    end

    it "prints JSON" do
      findings = section("diff", file, grown)["findings"]
      expect(findings.map { |finding| [finding["code"], finding.dig("change", "value")] })
        .to eq([["GREW", 90_000], ["UNCERTAIN", -4000]])
      expect(findings.first["probability"]).to be > 0.999
    end

    it "requires two profiles" do
      expect_failure(cli("diff", file), 2, /two profiles are needed, got 1/)
    end
  end

  describe "leaks" do
    before do
      20.times do |index|
        comments = { pid: 7, started_at: 1.5, minor_gc_count: index, major_gc_count: index }
        write("mem-7-#{index}.pprof", { "/srv/shop/leak.rb:1" => [0, 400 + (100 * index)],
                                        "/srv/shop/cache.rb:2" => [0, [index * 500, 2500].min] },
              time: 1_000_000_000 + (index * 60), comments: comments)
      end
    end

    it "lists the leak first, followed by what has settled" do
      lines = cli("leaks", ".").stdout.split("\n\n")[1].lines.drop(1)
      expect(lines).to match([/^growing  >99\.9% .* leak\.rb:1  /, /^settled .* cache\.rb:2  /])
    end

    it "exits with 1 on request if something grows" do
      expect(cli("leaks", ".")).to be_success
      expect(cli("leaks", "--exit-code", ".").status.exitstatus).to eq(1)
      expect(cli("leaks", "--exit-code", "--focus", "cache", ".")).to be_success
    end

    it "exits with 1 on request if memory grows that is no object's, and shows that process first" do
      Dir.glob("*.pprof") { |name| File.unlink(name) }
      [[7, 0], [8, 1]].product((0...20).to_a) do |(pid, growth), index|
        memory = RecordedMemory.json({ vm_memory: 30 + (growth * index) + (0.1 * (index % 3)) }, pid: pid)
        comments = { pid: pid, started_at: 1.5, major_gc_count: index, memory: memory }
        write("mem-#{pid}-#{index}.pprof", { "/srv/shop/leak.rb:1" => [0, 400] },
              time: 1_000_000_000 + (index * 60), comments: comments)
      end
      outcome = cli("leaks", "--exit-code", ".")
      expect(outcome.status.exitstatus).to eq(1)
      expect(outcome.stdout.scan(/^Process \d+|No line of code explains it|No part of the resident/))
        .to eq(["Process 8", "No line of code explains it", "Process 7", "No part of the resident"])
      expect(cli("leaks", "--exit-code", "mem-7-*.pprof")).to be_success
    end

    describe "of a library that the program calls" do
      before do
        Dir.glob("*.pprof") { |name| File.unlink(name) }
        20.times do |index|
          comments = { pid: 7, started_at: 1.5, minor_gc_count: index, major_gc_count: index }
          maker = Pprof::Maker.new(time: 1_000_000_000 + (index * 60), comments: comments)
          objects = 400 + (100 * index)
          maker.sample(["app /srv/shop/app.rb:1", "rack /x/gems/rack-2.2.4/lib/rack.rb:3"],
                       [0, 0, objects, objects * 100])
          File.binwrite("#{index}.pprof", maker.to_s)
        end
      end

      def names(*arguments)
        section("leaks", *arguments, ".")["findings"].map { |finding| finding["name"] }
      end

      it "names the library by gem" do
        expect(names("--by", "gem")).to eq(["rack"])
      end

      it "names the program by gem with --app" do
        expect(names("--by", "gem", "--app")).to eq(["app"])
      end

      it "names the program's line, unless --no-app is given" do
        expect([names, names("--no-app")]).to eq([["/srv/shop/app.rb:1"], ["/x/gems/rack-2.2.4/lib/rack.rb:3"]])
      end
    end

    it "takes files in any order, and expands patterns itself" do
      expected = cli("leaks", ".").stdout
      expect(cli("leaks", *Dir["*.pprof"].shuffle(random: Random.new(1))).stdout).to eq(expected)
      expect(cli("leaks", "mem-*.pprof").stdout).to eq(expected)
    end

    it "looks at a profile once that it finds twice" do
      FileUtils.cp("mem-7-3.pprof", "copy.pprof")
      expect(section("leaks", ".", "mem-7-0.pprof").slice("profiles", "left_out"))
        .to eq("profiles" => 20, "left_out" => 0)
    end

    it "has the totals of the process, whatever is selected" do
      expect(section("leaks", ".", "--focus", "cache")["totals"]).to eq(section("leaks", ".")["totals"])
    end

    it "examines each process separately" do
      write("mem-8-0.pprof", { "/srv/shop/leak.rb:1" => [0, 9] }, comments: { pid: 8 })
      json = JSON.parse(cli("leaks", "--json", ".").stdout)
      expect(json["sections"].map { |section| section["pid"] }).to eq([7])
      expect(json["notes"].map { |note| note["code"] }).to eq(%w[SINGLE_PROFILES])
      expect(cli("leaks", ".").stdout).to include("Processes with only one profile: 1")
    end

    it "takes no profiles for a series that do not say their process" do
      2.times { |index| write("oom-#{index}.pprof", { "/a.rb:1" => [0, 9] }, time: 1_000_000_000 + index) }
      json = JSON.parse(cli("leaks", "--json", ".").stdout)
      expect(json["sections"].map { |section| section["pid"] }).to eq([7])
      expect(json["notes"]).to include({ "code" => "NOT_IN_SERIES", "text" => /\ASums, and profiles that .*: 2\z/ })
    end

    it "leaves sums out of the series" do
      parts = Array.new(10) { |index| MemprofilerPprof::Profile.load("mem-7-#{index}.pprof") }
      File.binwrite("sum.pprof", MemprofilerPprof::Profile.merge(parts).to_pprof)
      json = JSON.parse(cli("leaks", "--json", ".").stdout)
      expect(json["sections"].first.slice("profiles", "left_out")).to eq("profiles" => 20, "left_out" => 0)
      expect(json["notes"].map { |note| note["code"] }).to eq(%w[NOT_IN_SERIES])
    end

    it "leaves what was written without the GVL out of the series" do
      write("mem-7-oom.pprof", { "/srv/shop/leak.rb:1" => [0, 9] },
            time: 2_000_000_000, comments: { pid: 7, started_at: 1.5, emergency: "written without the GVL" })
      json = JSON.parse(cli("leaks", "--json", ".").stdout)
      expect(json["sections"].first.slice("profiles", "left_out")).to eq("profiles" => 20, "left_out" => 0)
      expect(json["notes"].map { |note| note["code"] }).to eq(%w[NOT_IN_SERIES])
    end

    it "shows the processes of each value of a tag, with their tags" do
      { 8 => "1.2", 9 => "1.1" }.each do |pid, release|
        2.times do |index|
          write("mem-#{pid}-#{index}.pprof", { "/srv/shop/leak.rb:1" => [0, 9] },
                time: 1_000_000_000 + index, comments: { pid: pid, "tag.release": release })
        end
      end
      headings = cli("leaks", "--by-tag", "release", ".").stdout.scan(/^(?:==|Process \d+).*?(?:==|:)/)
      expect(headings).to eq(["== release=1.1 ==", "Process 9 (release=1.1):", "== release=1.2 ==",
                              "Process 8 (release=1.2):", "== without release ==", "Process 7:"])
    end

    it "shows those processes first that have something growing" do
      20.times do |index|
        write("early-#{index}.pprof", { "/srv/shop/cache.rb:2" => [0, [index * 500, 2500].min] },
              time: 1_000_000_000 + (index * 60), comments: { pid: 6, major_gc_count: index })
      end
      expect(cli("leaks", ".").stdout.scan(/^Process (\d+)|^(\w+) .*:\d/).flatten.compact)
        .to eq(%w[7 growing settled 6 settled])
    end

    it "exits the same, and names what it found, in all formats" do
      %w[text json markdown].each do |format|
        outcome = cli("leaks", "--exit-code", "--format", format, ".")
        expect([outcome.status.exitstatus, outcome.stdout]).to match([1, /growing/i])
      end
    end

    it "requires a series" do
      expect_failure(cli("leaks", "mem-7-1.pprof"), 2, /two profiles of one process are needed/)
    end

    it "names a file that is broken, or not a profile of live objects" do
      File.binwrite("mem-7-x.pprof", "nonsense")
      expect_failure(cli("leaks", "mem-7-1.pprof", "mem-7-x.pprof"), 2, /: mem-7-x\.pprof: not a valid pprof profile/)
    end
  end
end
