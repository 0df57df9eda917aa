# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "subprocess_helpers"

# Starts programs, and attaches to them.
module Attaching
  # Whether the tool can attach here: Yama may want root, even for processes of the same user.
  def self.possible?
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    RUBY_PLATFORM.match?(/x86_64-linux/) &&
      (Process.uid.zero? || !File.exist?(scope) || File.read(scope).to_i.zero?)
  end

  # A program that says when it runs.
  class Program
    # @return [Integer] its process's id
    attr_reader :pid

    # @param io [IO] to and from it
    def initialize(io)
      @io = io
      @pid = io.pid
      @io.gets
    end

    # Has it evaluate code, in a thread of its own if it has one for that.
    # @return [Object] the value, without symbols
    def ask(code)
      @io.puts(JSON.dump(code))
      JSON.parse(@io.gets).first
    end

    # Gives it an empty line.
    # @return [void]
    def puts
      @io.puts
    end

    # @return [String] its next line
    def gets
      @io.gets.chomp
    end

    # @return [Array<String>] what its descriptors are, without the numbers of pipes and sockets
    def descriptors
      Dir.children("/proc/#{pid}/fd").map { |name| File.readlink("/proc/#{pid}/fd/#{name}")[/[^\[]+/] }.sort
    end

    # @return [Boolean]
    def alive?
      !File.read("/proc/#{pid}/stat").match?(/\) [ZX] /)
    end

    # Ends it, and what it has started.
    def kill
      Process.kill(:KILL, -pid)
      @io.close
      FileUtils.rm_rf(["/tmp/memprofiler-#{pid}.sock", *Dir.glob("/tmp/memprofiler-attach-#{pid}-*")])
    end
  end

  # A thread of the program that evaluates what comes.
  ANSWERS = <<~RUBY
    require "json"
    $stdout.sync = true
    Thread.new { while (line = gets) do puts JSON.dump([eval(JSON.parse(line, quirks_mode: true))]) end }
    puts "runs"
  RUBY

  # @param code [String] Ruby code; `answers: false` for one that has no thread for questions
  # @param options [Array<String>] of Ruby
  # @param by [Array<String>] a command that runs it
  # @yieldparam program [Program]
  def with_program(code, *options, answers: true, env: {}, by: [])
    text = "#{answers ? ANSWERS : "$stdout.sync = true; puts"}\n#{code}"
    io = IO.popen([own_environment.merge(env), *by, RbConfig.ruby, *options, "-e", text], "r+", pgroup: true)
    program = Program.new(io)
    begin
      yield program
    ensure
      program.kill
    end
  end

  # @return [Array<String>] a command of this lane's library
  def command(*arguments)
    [*SubprocessHelpers::RUBY, *load_path_options, SubprocessHelpers::EXECUTABLE, *arguments.map(&:to_s)]
  end

  # @return [SubprocessHelpers::Outcome] of a command
  def memprofiler(*arguments, **keywords)
    run_command(*command(*arguments), **keywords)
  end

  # A command that has to succeed.
  # @return [String] what it printed
  def memprofiler!(*arguments, **keywords)
    outcome = memprofiler(*arguments, **keywords)
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout
  end

  # Attaches and detaches so often, and checks that nothing is left.
  # @param program [Program] with a thread for questions
  def expect_cycles(program, count = 10, rate: 0.1)
    before = nil
    count.times do |turn|
      memprofiler!("attach", "--rate", rate, program.pid)
      expect(profile(program.pid).comments).to include(/\Atag\.attached_at=/) if turn.zero?
      memprofiler!("detach", program.pid)
      # By now the program does what it is to do.
      before ||= program.descriptors
    end
    expect(program).to be_alive
    expect(program.descriptors).to eq(before)
  end

  # @return [MemprofilerPprof::Profile] of process `pid`
  def profile(pid)
    MemprofilerPprof::Profile.load(StringIO.new(memprofiler!("dump", "-o", "-", pid).b))
  end
end
