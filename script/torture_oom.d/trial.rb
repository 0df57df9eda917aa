# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "ruby_memprofiler_pprof"
require_relative "cgroup"

module TortureOom
  # One program that runs out of memory, and what it has left.
  class Trial
    # What program.rb can do.
    PROGRAMS = %w[ruby c_call threads fork].freeze
    PROGRAM = File.expand_path("program.rb", __dir__)
    LEAKS = File.readlines(PROGRAM).each_with_index.filter_map { |line, index| index + 1 if line.end_with?("# leak\n") }
    # Seconds after which a program that was not killed counts as a survivor.
    TIMEOUT = 60
    private_constant :PROGRAM, :LEAKS, :TIMEOUT

    # @return [String] the directory of the extension for `c_call`, which is compiled once
    def self.extension
      @extension ||= Dir.mktmpdir("hog").tap do |directory|
        at_exit { FileUtils.rm_rf(directory) }
        FileUtils.cp(File.expand_path("hog.c", __dir__), directory)
        [[RbConfig.ruby, "-rmkmf", "-e", "create_makefile('hog')"], ["make"]].each do |command|
          output, status = Open3.capture2e(*command, chdir: directory)
          raise "#{command.join(" ")} failed:\n#{output}" unless status.success?
        end
      end
    end

    # @return [Symbol] :complete, :emergency for a profile written without the GVL, :nothing, or :survived
    attr_reader :outcome

    # @param program [String] one of {PROGRAMS}
    # @param rate [Integer] MB/s
    # @param limit [Integer] MB
    def initialize(program, rate, limit)
      @program = program
      @rate = rate
      @limit = limit
    end

    # @return [self]
    def run
      Dir.mktmpdir("torture_oom") do |directory|
        killed = ended_by_kernel?(directory)
        @left = Dir.glob(File.join(directory, "*-oom*.pprof")).map { |file| examine(file) }
        @log = File.read(File.join(directory, "log"))
        kinds = @left.filter_map { |kind, named| kind if named }
        @outcome = killed ? (%i[complete emergency] & kinds).first || :nothing : :survived
      end
      self
    end

    # @return [String]
    def to_s
      "  #{@program} #{@rate} MB/s: #{@outcome} #{@left.map(&:last).inspect}\n#{@log.gsub(/^/, "    ")}"
    end

    private

    def ended_by_kernel?(directory)
      group = Cgroup.new(@limit * 1_000_000)
      pid = fork { execute(group, directory) }
      waiter = Process.detach(pid)
      return false unless waiter.join(TIMEOUT)

      # The program that forks survives its child.
      waiter.value.termsig == 9 || (@program == "fork" && waiter.value.success?)
    ensure
      group&.remove
    end

    def execute(group, directory)
      group.enter
      extension = @program == "c_call" ? ["-I", self.class.extension] : []
      log = File.join(directory, "log")
      exec(RbConfig.ruby, "-I", $LOAD_PATH.first, *extension, PROGRAM, @program, @rate.to_s,
           File.join(directory, "mem-%{pid}-%{isotime}.pprof"), out: log, err: log, in: File::NULL)
    end

    # @return [Array(Symbol, String)] what kind of profile it is, and the line of the program that retains most if that
    #   is right
    def examine(file)
      profile = MemprofilerPprof::Profile.load(file)
      kind = profile.comments.any?(/\Aemergency=/) ? :emergency : :complete
      line = profile.top(limit: 1, by: :line).first&.name.to_s
      [kind, (line if LEAKS.any? { |number| line.end_with?("program.rb:#{number}") })]
    rescue MemprofilerPprof::ProfileError => e
      [:unreadable, nil].tap { warn "#{file}: #{e.message}" }
    end
  end
end
