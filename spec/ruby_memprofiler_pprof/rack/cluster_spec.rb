# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"
require "tmpdir"

RSpec.describe MemprofilerPprof::Rack::Cluster do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after { servers.each { |thread| thread.kill.join } }

  let(:servers) { [] }
  let(:cluster) { described_class.new({ Process.pid => "own.sock", 1 => "1.sock", 2 => "2.sock" }) }

  # Lets a process answer; the block says what, to what it was asked.
  def process(pid, status: 200)
    server = UNIXServer.new("#{pid}.sock")
    servers << Thread.new do
      client = server.accept
      body = yield client.readpartial(999)[/\S+(?= HTTP)/]
      client.write("HTTP/1.0 #{status} x\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
      client.close
    end
  end

  def ask(pid, **parameters, &own)
    request = MemprofilerPprof::OnDemand::Request.new(name: "heap", **parameters)
    cluster.ask(pid, request, &own || -> { raise "not asked" })
  end

  def be_a_refusal(status, message)
    be_a(described_class::Refusal).and have_attributes(status: status, message: message)
  end

  it "asks another process, with the same parameters" do
    process(1) { |target| target }
    expect(ask(1, seconds: 3, gc: true)).to have_attributes(subject: "Process 1", texts: ["/heap?seconds=3&gc=1"])
  end

  it "asks no other process for its own answer, and not its own socket" do
    expect(ask(Process.pid) { "own" }).to have_attributes(subject: "Process #{Process.pid}", texts: ["own"])
  end

  it "asks all at the same time" do
    asked = Queue.new
    answers = [Queue.new, Queue.new]
    answers.each.with_index(1) { |answer, pid| process(pid) { (asked << pid) && answer.pop } }
    own = lambda do
      # Both were asked while this one is at it, and the first is the last to answer.
      2.times { asked.pop }
      answers.reverse_each { |answer| answer << "theirs" }
      "own"
    end
    expect(ask(:all, &own).texts).to eq(%w[theirs theirs own])
  end

  it "asks one after the other who holds what" do
    events = Queue.new
    process(1) do
      events << 1
      # Time in which the others would be asked.
      sleep 0.2
      (events << "answered") && "theirs"
    end
    process(2) { (events << 2) && "theirs" }
    request = MemprofilerPprof::OnDemand::Request.new(name: "retainers", format: :text, site: "a b.rb")
    expect(cluster.ask(:all, request) { (events << :own) && "own" }.texts).to eq(%w[theirs theirs own])
    expect(Array.new(4) { events.pop }).to eq([1, "answered", 2, :own])
  end

  it "goes without a process that refuses to say who holds what, be it its own" do
    process(1) { "theirs" }
    process(2, status: 503) { "Memory is short.\n" }
    request = MemprofilerPprof::OnDemand::Request.new(name: "retainers")
    answers = cluster.ask(:all, request) { raise MemprofilerPprof::RetainersError, "there are other Ractors" }
    expect(answers.texts).to eq(["theirs"])
    expect(answers.subject).to start_with("Process 1; ")
      .and include("; without 2: Memory is short", "; without #{Process.pid}: there are other Ractors (Memprofiler")
  end

  it "goes without its own process if that refuses" do
    [1, 2].each { |pid| process(pid) { "theirs" } }
    answers = ask(:all) { raise MemprofilerPprof::Error, "it has no reader left" }
    expect(answers.texts).to eq(%w[theirs theirs])
    expect(answers.subject)
      .to end_with("; without #{Process.pid}: it has no reader left (MemprofilerPprof::Error)")
  end

  it "goes without those that do not answer, and says which and why" do
    stub_const("#{described_class}::TIMEOUT", 0.05)
    process(1, status: 503) { "It sleeps.\n" }
    hung = UNIXServer.new("2.sock")
    answers = ask(:all) { "own" }
    expect(answers.subject)
      .to eq("Process #{Process.pid}; without 1: It sleeps; without 2: no answer within 0.05 s")
    expect(answers.mark([200, { "a" => "b" }, []])).to eq([200, { "a" => "b", "x-memprofiler-missing" => "1, 2" }, []])
    hung.close
  end

  it "says why the only one that is asked does not answer" do
    process(1, status: 503) { "It sleeps.\n" }
    expect { ask(1) }.to raise_error(be_a_refusal(503, "Process 1: It sleeps."))
    expect { ask(2) }.to raise_error(be_a_refusal(504, "Process 2: No such file or directory."))
  end

  it "says which processes there are" do
    expect { ask(3) }
      .to raise_error(be_a_refusal(404, "There is no process 3 here, only 1, 2, #{Process.pid}."))
  end

  it "leaves no thread behind when its own process raises" do
    stub_const("#{described_class}::TIMEOUT", 600)
    process(1) { sleep }
    expect { ask(:all) { raise IOError } }.to raise_error(IOError)
    wait_until { Thread.list.none? { |thread| thread.name == "ruby_memprofiler_pprof cluster" } }
  end

  describe "of real processes" do
    # Two processes and their parent, each with so many things; prints what the parent's endpoint answers.
    it "adds up what they have, and asks each by itself" do
      outcome = run_ruby(<<~'RUBY', chdir: Dir.pwd)
        require "ruby_memprofiler_pprof/rack"
        class Thing; end
        MemprofilerPprof.start(socket: "mem-%{pid}.sock", sample_rate: 1)
        KEPT = Array.new(1) { Thing.new }
        children = [10, 100].map do |count|
          reader, writer = IO.pipe
          pid = fork do
            KEPT.concat(Array.new(count) { Thing.new })
            sleep 0.01 until MemprofilerPprof.profiler.siblings.key?($$)
            writer.write(".")
            sleep
          end
          reader.read(1)
          pid
        end
        endpoint = MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true })
        get = lambda do |path, query|
          endpoint.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query)[2].join
        end
        things = lambda do |pid|
          profile = MemprofilerPprof::Profile.load(get.call("/heap", "pid=#{pid}"))
          profile.tag(class: "Thing").total(:retained_objects).value
        end
        p [*children, $$, "all"].map(&things)
        index = get.call("/", "")
        p [*children, $$, "all"].map { |pid| index.include?("/report?pid=#{pid}\"") }
        Process.kill(:KILL, children[0])
        Process.wait(children[0])
        p things.call("all"), get.call("/heap", "pid=#{children[0]}") == "There is no process #{children[0]} here, only #{[$$, children[1]].sort.join(", ")}.\n"
        puts get.call("/diff", "pid=all&seconds=1&debug=1&by=class&value=retained_objects&limit=5")[/^retained.*/]
        puts get.call("/leaks", "pid=#{children[1]}&debug=1")[/: 1 profile/]
        Process.kill(:KILL, children[1])
      RUBY
      expect(outcome.stdout.lines.map(&:chomp))
        .to match(["[11, 101, 1, 113]", "[true, true, true, true]", "102", "true", /\Aretained_objects: /,
                   ": 1 profile"]), outcome.to_s
    end
  end
end
