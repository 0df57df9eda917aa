# frozen_string_literal: true

require "pathname"
require "socket"
require "tmpdir"

RSpec.describe MemprofilerPprof::FilePattern do
  def expand(pattern, **values)
    described_class.new(pattern).expand(**values)
  end

  it "fills in the process id" do
    expect(expand("/x/%{pid}", pid: 12)).to eq("/x/12")
  end

  it "takes the calling process's id if none is given" do
    expect(expand("/x/%{pid}")).to eq("/x/#{Process.pid}")
  end

  it "fills in the machine's name" do
    expect(expand("/x/%{hostname}")).to eq("/x/#{Socket.gethostname}")
  end

  it "fills in the time in UTC, without colons" do
    expect(expand("/x/%{isotime}", time: Time.new(2026, 1, 2, 1, 4, 5, "+02:00"))).to eq("/x/20260101T230405Z")
  end

  it "fills in the seconds since 1970" do
    expect(expand("/x/%{unixtime}", time: Time.at(1234, 900, :millisecond))).to eq("/x/1234")
  end

  it "fills in the index, padded on request" do
    expect(expand("/%{index}/%<index>04d", index: 7)).to eq("/7/0007")
  end

  it "fills in the names of directories" do
    expect(expand("/%{pid}/x", pid: 3)).to eq("/3/x")
  end

  it "turns two percent signs into one" do
    expect(expand("/x/100%%")).to eq("/x/100%")
  end

  it "leaves percent signs in the working directory alone" do
    Dir.mktmpdir("50%{pid}") do |directory|
      name = Dir.chdir(directory) { expand("x") }
      expect(name).to eq(File.join(File.realpath(directory), "x"))
    end
  end

  it "stays in the directory in which it was created" do
    pattern = described_class.new("x")
    here = Dir.pwd
    expect(Dir.chdir("/") { pattern.expand }).to eq(File.join(here, "x"))
  end

  it "is of UTF-8 in a directory that the locale does not know" do
    allow(Dir).to receive(:pwd).and_return("/Ä".b)
    expect(expand("prö")).to eq("/Ä/prö")
  end

  it "takes a directory and a name that the locale does not know" do
    directory, pattern = %w[/Ä prö].map { |text| text.dup.force_encoding(Encoding::US_ASCII) }
    expect(described_class.new(pattern, directory: directory).expand).to eq("/Ä/prö")
  end

  describe "in a deleted directory" do
    around do |example|
      Dir.mktmpdir do |directory|
        Dir.chdir(directory) do
          Dir.rmdir(directory)
          example.run
        end
        # Removed by mktmpdir.
        Dir.mkdir(directory)
      end
    end

    it "takes an absolute name" do
      expect(expand("/x/%{pid}", pid: 12)).to eq("/x/12")
    end

    it "takes a relative name if a base directory is given" do
      expect(described_class.new("x", directory: "/y").expand).to eq("/y/x")
    end

    it "refuses a relative name" do
      expect { described_class.new("x") }.to raise_error(ArgumentError, /"x" cannot be expanded: No such file .*getcwd/)
    end
  end

  it "accepts a Pathname" do
    expect(expand(Pathname.new("/x/%{index}"))).to eq("/x/0")
  end

  it "takes a suffix, and names files in the same directory with it" do
    expect(described_class.new("x.pprof", directory: "/y").with_suffix("-z").expand).to eq("/y/x-z.pprof")
  end

  it "knows the directory that all names have in common" do
    patterns = ["x/%{pid}/y.pprof", "x/y-%{pid}.pprof", "%{pid}.pprof", "/%{pid}/y", "/z/y.pprof"]
    expect(patterns.map { |text| described_class.new(text, directory: "/d").common_directory })
      .to eq(%w[/d/x /d/x /d / /z])
  end

  it "returns the given text as a string" do
    expect(described_class.new("x/%{pid}").to_s).to eq("x/%{pid}")
  end

  describe "#files" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    def made(pattern)
      described_class.new(pattern).files.map { |path| path.delete_prefix("#{File.realpath(Dir.pwd)}/") }
    end

    {
      "%{pid}" => "12",
      "x.y+%{pid}%%.pb.gz" => "x.y+12%.pb.gz",
      "%{isotime}.pprof" => "20260101T000000Z.pprof",
      "%{unixtime}-%{index}.pprof" => "1234-0.pprof",
      "%{hostname}-%{pid}.pprof" => "web-1.example.org-12.pprof",
      "%<pid>08d-%<index>03d.pprof" => "00000012-001.pprof"
    }.each do |pattern, name|
      it "finds #{name} by #{pattern}, but not without its extension" do
        [name, name.chop, "+#{name}", "#{name}a"].uniq.each { |each| File.write(each, "") unless each.empty? }
        expect(made(pattern) - [name.chop]).to eq([name])
      end
    end

    it "finds names with a number before the extension" do
      File.write("12_x3.pb.gz", "")
      expect(made("%{pid}.pb.gz")).to eq(["12_x3.pb.gz"])
    end

    it "finds names in UTF-8 in any locale" do
      Dir.mkdir("7-Ä")
      File.write("7-Ä/8-ö.pprof", "")
      outcome = run_ruby('print MemprofilerPprof::FilePattern.new("%{pid}-\u00c4/%{pid}-\u00f6.pprof").files.join',
                         env: { "LC_ALL" => "C" })
      expect(outcome).to have_attributes(stdout: end_with("/7-Ä/8-ö.pprof"), stderr: "")
    end

    it "searches directories that the pattern produces, but follows no links" do
      %w[1 x].each { |name| Dir.mkdir(name) && File.write("#{name}/a", "") }
      File.symlink("x", "2")
      expect(made("%{pid}/a")).to eq(["1/a"])
    end

    it "finds what expand produces" do
      pattern = described_class.new("#{Dir.pwd}/%{pid}-%{isotime}-%{unixtime}-%{index}.pprof")
      path = pattern.expand(index: 7).tap { |name| File.write(name, "") }
      expect(pattern.files).to eq([path])
    end

    # Some file systems allow no such names.
    it "leaves out names that are not valid" do
      File.write("7\xff.pprof", "")
      File.write("7.pprof", "")
      expect(made("%{pid}.pprof")).to eq(["7.pprof"])
    rescue Errno::EILSEQ
      skip "no such file can exist here"
    end

    it "finds nothing if names contain neither process nor time" do
      File.write("a.pprof", "")
      expect(made("a.pprof")).to eq([])
    end

    it "finds nothing by formats that match anything" do
      File.write("c", "")
      expect(made("%<pid>x")).to eq([])
    end
  end

  describe "#files_by_pid" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    # The process ids by a pattern, in files of these names.
    def pids(pattern, *names)
      names.each { |name| File.write(name, "") }
      found = described_class.new(pattern).files_by_pid
      found.transform_values { |path| path.delete_prefix("#{File.realpath(Dir.pwd)}/") }
    end

    it "tells which process a name is of" do
      expect(pids("v2-%{pid}.sock", "v2-2.sock", "v2-71.sock", "v2-x.sock"))
        .to eq({ 2 => "v2-2.sock", 71 => "v2-71.sock" })
      expect(pids("%<pid>05d", "00071")).to eq({ 71 => "00071" })
    end

    it "tells it in a directory whose name is not UTF-8" do
      Dir.mkdir("\xff")
      File.write("\xff/7", "")
      expect(Dir.chdir("\xff") { described_class.new("%{pid}").files_by_pid.keys }).to eq([7])
    rescue Errno::EILSEQ
      skip "no such directory can exist here"
    end

    it "takes no name in which more differs" do
      expect(pids("%{pid}-%{isotime}", "7-20260101T000000Z")).to eq({})
      expect(pids("%{pid}.a", "7-1.a")).to eq({})
    end

    it "tells it by a pattern with the directory itself, or the one above it" do
      Dir.mkdir("x")
      expect(pids("./x/./a-%{pid}", "x/a-2")).to eq({ 2 => "x/a-2" })
      expect(pids("y/../x/a-%{pid}")).to eq({ 2 => "x/a-2" })
      expect(Dir.chdir("x") { described_class.new("../x/a-%{pid}").files_by_pid.keys }).to eq([2])
    end

    it "knows none by a pattern without the process" do
      expect(pids("%{isotime}", described_class.new("%{isotime}").expand)).to eq({})
    end
  end

  {
    "%{foo}" => 'pattern: "%{foo}" has the unknown key "foo", allowed are pid, hostname, isotime, unixtime, index',
    "%<foo>d" => /unknown key "foo", allowed are pid/,
    "%{}" => /unknown key ""/,
    "100%" => /has a % that begins no key, write %% for the sign itself/,
    "%d" => /begins no key/,
    "%{pid" => /begins no key/,
    "%<index>" => /begins no key/,
    "%<isotime>d" => /cannot be expanded: invalid value for Integer/,
    "" => /is empty/,
    "a/" => /names a directory/,
    "a\0b" => /null byte/,
    "a\xff" => /"a\\xFF" is not UTF-8/,
    "~no-such-user/x" => /cannot be expanded: .*no-such-user/
  }.each do |pattern, message|
    it "refuses #{pattern.inspect}" do
      expect { described_class.new(pattern) }.to raise_error(ArgumentError, message)
    end
  end

  it "refuses a value that is not a file name" do
    expect { described_class.new(3) }.to raise_error(TypeError, "pattern must be a String or Pathname, got 3")
  end
end
