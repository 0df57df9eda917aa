# frozen_string_literal: true

require "net/http"

# A real server with real workers: none of Puma's hooks knows about the profiler.
RSpec.describe "A Rails app under Puma", :rails, :threads do
  before { skip "Puma is not installed" unless UsableGems.include?("puma") }

  after { stop }

  let(:log) { "#{app}/puma.log" }

  def serve(*options, env: {})
    configure("config.enabled = true; config.sample_rate = 1; config.max_heap_samples = 1_000_000; " \
              "config.interval = 0.5; config.endpoint = '/debug/pprof'; config.endpoint_authorize = ->(_) { true }")
    environment = { "RAILS_ENV" => "production", "RUBYLIB" => SubprocessHelpers::LIB, "RUBYOPT" => nil, **env }
    @puma = Process.spawn(environment, RbConfig.ruby, *load_path_options, "-S", "puma", "-b", "tcp://127.0.0.1:0",
                          *options, chdir: app, out: log, err: %i[child out], pgroup: true)
    @port = wait_until(what: "Puma's start") { File.read(log)[%r{http://127\.0\.0\.1:(\d+)}, 1] }
  end

  def get(path)
    Net::HTTP.get(URI("http://127.0.0.1:#{@port}#{path}"))
  end

  # Sends requests until each of the given number of processes has answered.
  # @return [Hash{Integer => Integer}] how many requests each handled, by process id
  def visit(processes)
    visits = Hash.new(0)
    wait_until(what: "an answer of each worker") do
      4.times.map { Thread.new { get("/jars") } }.each { |thread| visits[Integer(thread.value)] += 1 }
      visits.size == processes
    end
    visits
  end

  # Not by TERM: Puma up to 8.0.2 may then hang (puma/puma#3677), with or without the profiler.
  def stop
    return unless @puma

    Process.kill(:KILL, -@puma)
    Process.wait(@puma)
  end

  # The jars by endpoint in the last profile of each process that has any.
  def jars_by_process
    last = profiles.group_by { |path| path[/mem-(\d+)/, 1].to_i }
                   .transform_values { |paths| jars(paths.max_by { |path| File.mtime(path) }, "endpoint") }
    last.reject { |_, jars| jars.empty? }
  end

  # Waits for the profiles that include all visits.
  def expect_jars_of(visits)
    expected = visits.transform_values { |count| { "jars#index" => 100 * count } }
    wait_until(what: "a profile with #{expected}") { jars_by_process == expected }
  end

  it "writes a profile of each worker when the app is preloaded", :slow do
    serve("-w", "2", "--preload")
    expect_jars_of(visit(2))
  end

  it "writes a profile of each worker that loads the app itself", :slow do
    serve("-w", "2")
    expect_jars_of(visit(2))
  end

  it "serves the profiles of all workers, whichever answers", :slow do
    FileUtils.mkdir_p("#{app}/tmp/sockets")
    serve("-w", "2", env: { "RUBY_MEMPROFILER_PPROF_SOCKET" => "tmp/sockets/%{pid}.sock" })
    visits = visit(2)
    visits.each_key do |pid|
      wait_until(what: "a list with #{pid}") { get("/debug/pprof/").include?("pid=#{pid}") }
    end
    expected = { **visits, "all" => visits.values.sum }
    told = expected.to_h do |pid, _|
      File.binwrite("#{app}/heap.pprof", get("/debug/pprof/heap?pid=#{pid}"))
      [pid, jars("#{app}/heap.pprof", "endpoint").fetch("jars#index") / 100]
    end
    expect(told).to eq(expected)
  end

  it "serves a profile of a single process" do
    serve
    get("/jars")
    File.binwrite("#{app}/heap.pprof", get("/debug/pprof/heap"))
    expect(jars("#{app}/heap.pprof", "endpoint")).to eq("jars#index" => 100)
  end
end
