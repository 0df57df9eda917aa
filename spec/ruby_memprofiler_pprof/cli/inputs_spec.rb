# frozen_string_literal: true

require "fileutils"
require "json"
require "pty"
require "timeout"
require "tmpdir"
require "zlib"

# Which profiles commands read.
RSpec.describe "memprofiler, finding profiles" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def cli(*arguments, **keywords)
    run_command(*SubprocessHelpers::MEMPROFILER, *arguments, **keywords)
  end

  # With the file as stdin.
  def cli_with_stdin(file, *arguments)
    run_command("sh", "-c", "exec \"$0\" \"$@\" <#{file}", *SubprocessHelpers::MEMPROFILER, *arguments)
  end

  def bytes(objects, time: 0, pid: 7)
    Pprof::Maker.lines({ "/srv/a.rb:1" => [0, objects] }, time: time, comments: { pid: pid, started_at: 1 }).to_s
  end

  def inputs(outcome)
    JSON.parse(outcome.stdout)["inputs"]
  end

  def expect_failure(outcome, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: 2), stdout: "", stderr: message)
  end

  describe "without a file" do
    # The time in the profile, and that of the file: process 8 has written the newest file.
    before do
      FileUtils.mkdir_p("tmp/profiles")
      [["a", 7, 100, 5], ["b", 8, 300, 6], ["c", 8, 200, 3], ["d", 8, 400, 9], ["e", 7, 500, 8]]
        .each do |name, pid, time, written|
          file = "tmp/profiles/#{name}.pprof"
          File.binwrite(file, bytes(time, time: time, pid: pid))
          File.utime(written, written, file)
        end
    end

    %w[report flamegraph export].each do |command|
      it "takes the newest in tmp/profiles for #{command}" do
        outcome = cli(command)
        expect(outcome.stderr).to eq("memprofiler #{command}: d.pprof, the newest of 5 profiles in tmp/profiles\n")
        expect(outcome.stdout).to match(%r{\Atmp/profiles/d.pprof, |\Ad\.(html|speedscope\.json)\n})
      end
    end

    it "takes all in tmp/profiles for leaks" do
      outcome = cli("leaks", "--json")
      expect(outcome.stderr).to eq("memprofiler leaks: all 5 profiles in tmp/profiles\n")
      expect(inputs(outcome).map { |name| name[/\w(?=\.)/] }).to eq(%w[a b c d e])
    end

    it "says that there is only one" do
      %w[a b c e].each { |name| File.unlink("tmp/profiles/#{name}.pprof") }
      expect([cli("report"), cli("leaks")].map { |outcome| outcome.stderr.lines.first })
        .to eq(["memprofiler report: d.pprof, the only profile in tmp/profiles\n",
                "memprofiler leaks: the only profile in tmp/profiles\n"])
    end

    it "compares the first and the last of the newest process for diff" do
      outcome = cli("diff", "--json")
      expect(outcome.stderr)
        .to eq("memprofiler diff: the first and the last of 3 profiles of process 8 in tmp/profiles\n")
      expect(inputs(outcome)).to eq(%w[tmp/profiles/c.pprof tmp/profiles/d.pprof])
    end

    it "passes over a process that has only one for diff" do
      %w[b c].each { |name| File.unlink("tmp/profiles/#{name}.pprof") }
      outcome = cli("diff", "--json")
      expect(outcome.stderr)
        .to eq("memprofiler diff: the first and the last of 2 profiles of process 7 in tmp/profiles\n")
      expect(inputs(outcome)).to eq(%w[tmp/profiles/a.pprof tmp/profiles/e.pprof])
    end

    it "compares the first and the last of a directory that diff is given" do
      FileUtils.mv("tmp/profiles", "soak")
      outcome = cli("diff", "--json", "soak")
      expect(outcome.stderr).to eq("memprofiler diff: the first and the last of 3 profiles of process 8 in soak\n")
      expect(inputs(outcome)).to eq(%w[soak/c.pprof soak/d.pprof])
      expect_failure(cli("diff", "tmp"), "memprofiler: no profiles in tmp\n")
    end

    it "compares the only two of a directory, whatever processes they are of" do
      %w[c d e].each { |name| File.unlink("tmp/profiles/#{name}.pprof") }
      expect(inputs(cli("diff", "--json", "tmp/profiles"))).to eq(%w[tmp/profiles/a.pprof tmp/profiles/b.pprof])
    end

    it "needs two of a process for diff" do
      %w[a b c].each { |name| File.unlink("tmp/profiles/#{name}.pprof") }
      expect_failure(cli("diff"), /: two profiles of process 8 are needed, got 1: name two files\n/)
    end

    it "needs names for diff if the newest does not say its process" do
      %w[f g].each do |name|
        File.binwrite("tmp/profiles/#{name}.pprof", Pprof::Maker.lines({ "/srv/a.rb:1" => [0, 9] }).to_s)
      end
      expect_failure(cli("diff"), %r{: tmp/profiles/[fg]\.pprof does not say its process: name two files\n})
    end

    it "says so if there is none" do
      FileUtils.rm(Dir["tmp/profiles/*"])
      expect_failure(cli("leaks"), %r{: no file named, and no profiles in tmp/profiles, see memprofiler leaks --help\n})
      FileUtils.rm_r("tmp")
      expect_failure(cli("report"),
                     %r{: no file named, and no profiles in tmp/profiles, see memprofiler report --help\n})
    end
  end

  it "names a directory that may not be read" do
    Dir.mkdir("d", 0o300)
    File.chmod(0o711, ".")
    # Root may read everything.
    File.write("user.rb", "Process::Sys.setuid(65_534) if Process.uid.zero?")
    File.chown(65_534, nil, "d") if Process.uid.zero?
    expect_failure(cli("report", "d", env: { "RUBYOPT" => "-r#{Dir.pwd}/user" }),
                   "memprofiler: d: Permission denied\n")
  end

  [%w[report], %w[flamegraph --merge -o -], %w[export -o -]].each do |command|
    it "names the file that #{command.first} cannot add to the others" do
      %w[a b].each { |name| File.binwrite("#{name}.pprof", bytes(1)) }
      File.binwrite("cpu.pprof", Pprof::Maker.new(types: [%w[samples count]]).sample(["a"], [1], nil).to_s)
      expect_failure(cli(*command, "a.pprof", "b.pprof", "cpu.pprof"),
                     %r{: cpu\.pprof cannot be merged with a\.pprof: its sample types are samples/count, not alloc})
    end
  end

  it "leaves out what was found in a directory and has other values, and says so" do
    Dir.mkdir("d")
    %w[a c].each { |name| File.binwrite("d/#{name}.pprof", bytes(1)) }
    File.binwrite("d/b.pprof", Pprof::Maker.new(types: [%w[samples count]]).sample(["a"], [1], nil).to_s)
    outcome = cli("report", "d")
    expect(outcome.stdout).to start_with("2 profiles\n")
    expect(outcome.stderr)
      .to match(%r{\Amemprofiler report: left out d/b\.pprof: its sample types are not those of d/[ac]\.pprof\n\z})
  end

  # A running process keeps fewer and fewer of its old profiles.
  it "leaves out what is removed while leaks reads" do
    10.times { |index| File.binwrite("a#{index}.pprof", bytes(index, time: index + 1)) }
    File.delete("a0.pprof")
    File.mkfifo("a0.pprof")
    outcome = Thread.new { cli("leaks", ".") }
    # Opens only once the command reads the first file.
    File.open("a0.pprof", "wb") do |first|
      File.delete("a9.pprof")
      first.write(bytes(0, time: 1))
    end
    expect(outcome.value).to have_attributes(stdout: include("Process 7: 9 profiles"), stderr: "")
  end

  describe "in a directory with a file that cannot be read" do
    before do
      Dir.mkdir("d")
      [1, 2].each do |time|
        File.binwrite("d/a#{time}.pprof", Pprof::Maker.lines({ "/a.rb:1" => [0, time] }, time: time, comments: {
                                                               pid: 7, started_at: 1, "tag.release": "1"
                                                             }).to_s)
      end
      File.binwrite("d/broken.pprof", "nonsense")
    end

    { %w[report] => "2 profiles, ", %w[report --by-tag release] => "2 profiles, ", %w[leaks] => "): 2 profiles, ",
      %w[flamegraph -o - --title a1] => "<title>a1", %w[export -o -] => '"name":"2 profiles"' }
      .each do |command, expected|
      it "leaves it out, and says so once, for #{command.join(" ")}" do
        outcome = cli(*command, "d")
        expect(outcome.stdout).to include(expected)
        expect(outcome.stderr)
          .to match(%r{\Amemprofiler #{command.first}: left out d/broken\.pprof: not a valid pprof [^\n]+\n\z})
      end
    end

    it "compares two others" do
      FileUtils.mkdir("tmp")
      File.rename("d", "tmp/profiles")
      expect(cli("diff")).to have_attributes(stdout: start_with("tmp/profiles/a1.pprof -> tmp/profiles/a2.pprof"),
                                             stderr: include("left out tmp/profiles/broken.pprof", "of 2 profiles"))
    end

    it "fails if it is named" do
      expect_failure(cli("report", *Dir["d/*"]), %r{\Amemprofiler: d/broken\.pprof: not a valid pprof})
    end

    it "fails if no other is there" do
      FileUtils.rm(Dir["d/a*"])
      expect_failure(cli("report", "d"), /^memprofiler: none of these profiles can be read\n\z/)
    end
  end

  it "takes names with any characters, in any locale" do
    File.binwrite("été\xFF.pprof", Pprof::Maker.lines({ "/srv/王.rb:1" => [0, 100] }).to_s)
    { text: "/srv/王.rb:1", markdown: "`/srv/王.rb:1", json: '"name": "/srv/王.rb:1"' }.each do |format, site|
      outcome = cli("report", "--format", format.to_s, ".", env: { "LC_ALL" => "C" })
      expect(outcome.stderr).to eq("")
      expect(outcome.stdout.dup.force_encoding(Encoding::UTF_8).scrub).to include("./été\uFFFD.pprof", site)
    end
  end

  it "takes a directory and names in it that are not of the same encoding" do
    Dir.mkdir("\xFF")
    File.binwrite("\xFF/ö.pprof", bytes(1))
    outcomes = %w[report memory].map { |command| cli(command, "\xFF") }
    expect(outcomes.map { |outcome| outcome.stderr.scrub })
      .to eq(["", "memprofiler: \uFFFD/ö.pprof: the profile does not say where the memory was\n"])
  end

  describe "for -" do
    before do
      File.binwrite("plain", bytes(100))
      File.binwrite("zipped", Zlib.gzip(bytes(200, time: 60)))
      File.binwrite("old.pprof", bytes(50, time: 10))
    end

    it "reads stdin, gzipped or not" do
      totals = %w[plain zipped].map { |file| JSON.parse(cli_with_stdin(file, "report", "-", "--json").stdout) }
                               .map { |json| json["sections"][0]["total"]["value"] }
      expect(totals).to eq([10_000, 20_000])
    end

    it "reads it among files" do
      outcome = cli_with_stdin("zipped", "diff", "old.pprof", "-")
      expect(outcome.stdout).to start_with("old.pprof -> stdin, 50 s later\n")
    end

    it "reads it once, where other files are read twice" do
      File.binwrite("tagged", Pprof::Maker.lines({ "/a.rb:1" => [0, 9] }, comments: { "tag.release": "1" }).to_s)
      expect(cli_with_stdin("tagged", "report", "--by-tag", "release", "-").stdout).to start_with("== release=1 ==\n")
    end

    it "calls a flame graph so" do
      expect(cli_with_stdin("plain", "flamegraph", "-").stdout).to eq("stdin.html\n")
    end

    it "takes it only once" do
      expect_failure(cli_with_stdin("plain", "diff", "-", "-"), "memprofiler: stdin (-) can be read only once\n")
      expect_failure(cli_with_stdin("zipped", "flamegraph", "-", "--base", "-"), /can be read only once/)
    end

    it "says so if it is no profile" do
      File.write("text", "hello")
      expect_failure(cli_with_stdin("text", "leaks", "-"), /\Amemprofiler: stdin: not a valid pprof profile/)
    end

    it "does not wait for a terminal" do
      text = +""
      PTY.spawn({ "RUBYOPT" => nil }, *SubprocessHelpers::MEMPROFILER, "report", "-") do |output, _, pid|
        Timeout.timeout(60) { loop { text << output.readpartial(1024) } }
      rescue EOFError, Errno::EIO
        Process.wait(pid)
      end
      expect(text).to eq("memprofiler: stdin (-) is a terminal, and no profile\r\n")
    end
  end
end
