# frozen_string_literal: true

# Serves the Rails app in spec/apps/shop under the profiler, sends it visitors, asks it who holds what, and asks pprof
# which of the app's own lines has allocated that. The app has one leak; the exit status is 1 if its line is not the
# first that pprof names, or if its holder is not named.

require "English"
require "fileutils"
require "open3"
require_relative "../spec/apps/shop/visitors"

Dir.chdir(File.expand_path("..", __dir__))

SHOP = File.expand_path("spec/apps/shop")
LEAK = { file: "app/services/product_card_cache.rb", source: "@cards[key] ||=",
         holder: /(?:100|9\d)% held by\n +ProductCardCache\b.*\n +@cards → Hash \([\d,]+\) +retains/ }.freeze
OUTPUT = "tmp/demo"
# At least so many visitors; on a busy machine more come, until there are so many profiles, and these tell the leak from
# ups and downs.
VISITORS = 40..300
PROFILES = 20

# Puma with the app. Only the gem's wrapper adds the profiler.
class Server
  LOG = File.join(OUTPUT, "puma.log")
  OUTPUT_FROM_SHOP = File.join("../../..", OUTPUT)
  ENVIRONMENT = {
    "RAILS_ENV" => "production",
    "DATABASE_URL" => "sqlite3:#{OUTPUT_FROM_SHOP}/shop.sqlite3",
    "PORT" => "0",
    "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "0.1",
    "RUBY_MEMPROFILER_PPROF_INTERVAL" => "1",
    "RUBY_MEMPROFILER_PPROF_GC" => "true",
    "RUBY_MEMPROFILER_PPROF_SOCKET" => "#{OUTPUT_FROM_SHOP}/memprofiler.sock",
    "RUBY_MEMPROFILER_PPROF_PATTERN" => "#{OUTPUT_FROM_SHOP}/mem-%{pid}-%{isotime}.pprof"
  }.freeze

  def start
    spawn("bin/setup")
    wait_for("the database") { exited? }
    raise "bin/setup failed; #{excerpt}" unless $CHILD_STATUS.success?

    spawn("../../../exe/ruby_memprofiler_pprof_profile", "puma")
    wait_for("Puma and a first profile") { serving? && profiles.any? }
  end

  def port
    log[%r{Listening on http://127\.0\.0\.1:(\d+)}, 1]
  end

  # TERM asks Puma to finish its requests and exit.
  def stop
    return unless @pid

    Process.kill(:TERM, @pid)
    wait_for("Puma's end") { exited? }
  ensure
    Process.kill(:KILL, @pid) if @pid
  end

  def profiles
    Dir["#{OUTPUT}/*.pprof"].sort_by { |path| File.mtime(path) }
  end

  def megabytes
    File.read("/proc/#{@pid}/status")[/^VmRSS:\s*(\d+)/, 1].to_i / 1024
  rescue SystemCallError
    nil
  end

  private

  def log
    File.read(LOG)
  end

  def excerpt
    "#{LOG} ends with:\n#{log.lines.last(20).join}"
  end

  def spawn(*command)
    @pid = Process.spawn(ENVIRONMENT, *command, chdir: SHOP, in: File::NULL, out: [LOG, "a"], err: %i[child out])
  end

  def serving?
    raise "Puma has exited; #{excerpt}" if exited?

    port
  end

  def exited?
    @pid = nil if Process.wait(@pid, Process::WNOHANG)
    @pid.nil?
  end

  def wait_for(what, seconds = 60)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until yield
      raise "waited #{seconds} s for #{what}; #{excerpt}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.1
    end
  end
end

# What `go tool pprof` reports about the app's own frames: with the others hidden, `flat` is what a line of the app
# allocated, itself or through libraries.
class Profile
  OPTIONS = ["-sample_index=retained_size", "-lines", "-show=^\\Q#{SHOP}/\\E", "-trim_path=#{SHOP}/"].freeze

  def initialize(path)
    @path = path
  end

  def command(*options)
    ["go", "tool", "pprof", *options, *OPTIONS, @path]
  end

  def pprof(*options)
    out, err, status = Open3.capture3(*command(*options))
    raise "#{command(*options).join(" ")} said:\n#{err}" unless status.success? && err.empty?

    out
  end

  def top
    @top ||= pprof("-top", "-nodecount=8", "-unit=MB")
  end

  # The line that retains most, as "file:number", and its megabytes.
  def first_line
    lines = Hash.new(0)
    top.scan(/^ *([\d.]+)MB .* (\S+:\d+)$/) { |megabytes, line| lines[line] += megabytes.to_f }
    lines.max_by(&:last) || raise("pprof names no line of the app in #{@path}:\n#{top}")
  end

  # The call paths through the app that retain most, as [frames, bytes].
  def paths(count)
    paths = Hash.new(0)
    pprof("-traces", "-unit=B").gsub("#{SHOP}/", "").split(/^-+\+-+\n/).each do |sample|
      bytes, *frames = sample.scan(/^ *(\d+B?)? {3}(\S.* \S+:\d+)$/).flatten.compact
      paths[frames] += bytes.to_i if frames.any?
    end
    paths.max_by(count, &:last)
  end
end

def profile_the_shop
  FileUtils.rm_rf(OUTPUT)
  FileUtils.mkdir_p(OUTPUT)
  server = Server.new
  puts "Starting the shop: ruby_memprofiler_pprof_profile puma"
  server.start
  visit(server)
  holders = ask_who_holds_it
  # The last profile is written at exit, so it includes everything.
  server.stop
  [server.profiles, holders]
ensure
  server&.stop
end

def visit(server)
  boot = server.profiles.size
  visitors = Visitors.new(server.port, VISITORS.begin) do |come|
    come >= VISITORS.end || (server.profiles.size >= boot + PROFILES && growing(leaks))
  end
  print $stdout.tty? ? "\r\e[K#{progress(visitors, server)}" : "." until visitors.done?
  puts $stdout.tty? ? "\r\e[K#{progress(visitors, server)}" : " #{progress(visitors, server)}"
end

def progress(visitors, server)
  "#{visitors.gone} visitors, #{visitors.requests} requests, Puma's memory: #{server.megabytes || "?"} MB, " \
    "profiles: #{server.profiles.size}"
end

# The running process says who holds what the leaking line has allocated.
def ask_who_holds_it
  why = [RbConfig.ruby, "exe/memprofiler", "why", "--site", LEAK[:file], "#{OUTPUT}/memprofiler.sock"]
  out, status = Open3.capture2(*why)
  raise "why failed" unless status.success?

  out
end

def show_holders(text)
  puts "", "Who holds what that line has allocated, as the process said while it ran (memprofiler why --site " \
           "#{LEAK[:file]} #{OUTPUT}/memprofiler.sock):", "", text
  raise "that is not the holder of the leak" unless text.match?(LEAK[:holder])
end

def show_profile(profile)
  puts "", "What the app's own lines retain, with all that they call:", "", profile.top
  puts "", "The call paths through the app that retain most:"
  profile.paths(3).each do |frames, bytes|
    frames = frames.chunk(&:itself).map(&:first)
    puts "", format("%9.2fMB  %s", bytes.fdiv(1 << 20), frames.join("\n#{" " * 13}"))
  end
end

def show_verdict(profile)
  line, megabytes = profile.first_line
  file, number = line.split(":")
  puts "", "Open spec/apps/shop/#{line}, which retains #{megabytes} MB:", "",
       File.readlines("#{SHOP}/#{file}")[number.to_i - 1]

  leak = File.readlines("#{SHOP}/#{LEAK[:file]}").index { |source| source.include?(LEAK[:source]) } + 1
  raise "that is not the leak, which is #{LEAK[:file]}:#{leak}" unless line == "#{LEAK[:file]}:#{leak}"
end

# The output of `leaks`, which needs only this gem.
def leaks
  out, status = Open3.capture2(RbConfig.ruby, "exe/memprofiler", "leaks", "--limit", "8", OUTPUT)
  raise "leaks failed" unless status.success?

  out
end

# What it says grows most.
def growing(leaks)
  leaks[/^growing .*$/]
end

# The leaking line should come first; the caches are settled.
def show_leaks
  found = leaks
  puts "", "What keeps growing, and what has settled (memprofiler leaks #{OUTPUT}):", "", found
  first = growing(found) || raise("leaks finds nothing that grows")
  raise "leaks names another line first: #{first}" unless first.include?("#{LEAK[:file].split("/").last}:")
end

def show_commands(profiles)
  last = profiles.last
  puts "", "To look at all call paths, at what grew since the first profile, and at the table above:", "",
       "  go tool pprof -http=: #{last}",
       "  go tool pprof -http=: -diff_base=#{profiles.first} #{last}",
       "  #{Profile.new(last).command("-top").map { |word| word.include?("\\") ? "'#{word}'" : word }.join(" ")}"
end

begin
  profiles, holders = profile_the_shop
  profile = Profile.new(profiles.last)
  show_profile(profile)
  show_leaks
  show_commands(profiles)
  show_verdict(profile)
  show_holders(holders)
rescue Interrupt
  exit 130
rescue StandardError => e
  abort "script/demo: #{e.message}"
end
