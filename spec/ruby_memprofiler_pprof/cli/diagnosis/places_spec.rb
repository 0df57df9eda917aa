# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli"
require "ruby_memprofiler_pprof/cli/doctor"
require "tmpdir"

RSpec.describe "MemprofilerPprof::CLI::Diagnosis::Places" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The finding of a doctor with these settings.
  def finding(name, **settings)
    env = settings.transform_keys { |keyword| "RUBY_MEMPROFILER_PPROF_#{keyword.upcase}" }
    check = MemprofilerPprof::CLI::Diagnosis.new(env).checks.find { |other| other.name == name }
    check&.then { |found| [found.status, found.text] }
  end

  it "finds where files and the socket can be made, and leaves nothing there" do
    expect([finding("files"), finding("socket"), finding("socket", socket: "a/b.sock")])
      .to eq([[:ok, "can be written to #{Dir.pwd}/tmp/profiles"], nil, [:ok, "can be opened as #{Dir.pwd}/a/b.sock"]])
    expect(Dir.children(".")).to eq([])
  end

  it "finds what permissions do not say" do
    skip "there is no /proc" unless File.directory?("/proc/self")
    expect([finding("files", pattern: "/proc/a/%{pid}.pprof"), finding("socket", socket: "/proc/x.sock")])
      .to match([[:failing, %r{\Acannot be written to /proc/a: nothing can be made in /proc: .}],
                 [:failing, %r{\Acannot be opened as /proc/x.sock: nothing can be made in /proc: .}]])
  end

  it "finds a file in a directory's place" do
    File.write("a", "")
    expect(finding("socket", socket: "a/b.sock"))
      .to match([:failing, %r{\Acannot be opened as .*/a/b.sock: nothing can be made in #{Dir.pwd}/a: Not a directory}])
  end

  it "finds that a socket's name is too long" do
    expect(finding("socket", socket: "a" * 150)).to match([:failing, /\Acannot be opened: too long unix socket path/])
  end

  it "finds a limit on the size of files" do
    allow(Process).to receive(:getrlimit).with(:FSIZE).and_return([0, 0], [0, 0], [512, 512])
    expect([finding("files"), finding("files")])
      .to match([[:failing, /if they have at most 0 bytes \(ulimit -f\)/], [:note, /if they have at most 512 bytes/]])
  end
end
