# frozen_string_literal: true

%w[cli cli/top report cli/top/directory].each { |name| require "ruby_memprofiler_pprof/#{name}" }
require "tmpdir"

RSpec.describe MemprofilerPprof::CLI::Top::Directory do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after { servers.each { |thread| thread.kill.join } }

  let(:servers) { [] }
  let(:profile) { Pprof::Maker.lines({ "/a.rb:1" => [1, 1] }, duration: 1).to_s }

  # Lets a process answer when a queue says so. Returns the queue of what it was asked.
  def process(path, answers = nil)
    server = UNIXServer.new(path)
    File.chmod(0o600, path)
    requests = Queue.new
    servers << Thread.new do
      loop do
        client = server.accept
        requests << client.readpartial(99)
        answers&.pop
        client.write("HTTP/1.0 200 OK\r\nContent-Length: #{profile.bytesize}\r\n\r\n".b << profile)
        client.close
      end
    end
    requests
  end

  def kinds(fetched)
    fetched.transform_values { |answer| answer.is_a?(Exception) ? answer.message : answer.class }
  end

  it "asks all that listen, those that have come as well, and none that has gone" do
    process("a.sock")
    UNIXServer.new("gone.sock").close
    directory = described_class.new(".")
    expect(kinds(directory.fetch(1))).to eq("./a.sock" => MemprofilerPprof::Profile)
    process("b.sock")
    File.unlink("a.sock")
    expect(kinds(directory.fetch(1))).to eq("./b.sock" => MemprofilerPprof::Profile)
  end

  it "asks none to which others may connect, as a web server's" do
    process("a.sock")
    requests = process("puma.sock")
    File.chmod(0o777, "puma.sock")
    expect([described_class.new(".").fetch(1).keys, requests]).to match([["./a.sock"], be_empty])
  end

  it "asks the chosen one alone" do
    process("a.sock")
    others = process("b.sock")
    expect([described_class.new(".").fetch(1, "./a.sock").keys, others]).to match([["./a.sock"], be_empty])
  end

  it "shows the others without one that is slow, whose answer comes later" do
    stub_const("#{described_class}::PATIENCE", -1)
    gate = Queue.new
    requests = process("slow.sock", gate)
    directory = described_class.new(".")
    expect(kinds(directory.fetch(1))).to eq("./slow.sock" => "no answer yet")
    gate << true
    expect(wait_until { kinds(directory.fetch(1)).values.find { |answer| answer != "no answer yet" } })
      .to eq(MemprofilerPprof::Profile)
    # It was not asked again meanwhile.
    expect(requests.size).to eq(1)
  end

  it "finds sockets in a directory whose name the locale does not know" do
    Dir.mkdir("ä")
    process("ä/ö.sock")
    outcome = run_command(*SubprocessHelpers::MEMPROFILER, "top", "--once", "ä", env: { "LC_ALL" => "C" })
    expect([outcome.stderr, outcome.stdout]).to match(["", /\Aä, 1 process$/])
  end

  it "loads no OpenSSL for a socket that does not answer, which may need more files than the process may open" do
    outcome = run_ruby(<<~RUBY)
      %w[cli cli/source].each { |name| require "ruby_memprofiler_pprof/\#{name}" }
      MemprofilerPprof::CLI::UnixSocket.new("none.sock").fetch(1) rescue print $!.class
      print $LOADED_FEATURES.grep(/openssl/)
    RUBY
    expect(outcome).to have_attributes(stdout: "MemprofilerPprof::CLI::Source::Unavailable[]", stderr: "")
  end

  it "is what stands for several sockets" do
    process("a.sock")
    Dir.mkdir("[x]")
    names = [".", "[x]", "*.sock", "mem-%{pid}.sock", "a.sock", "none.sock", "http://x/?pid=1"]
    expect(names.select { |name| described_class.address?(name) }).to eq(names.first(4))
  end
end
