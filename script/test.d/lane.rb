# frozen_string_literal: true

require "shellwords"

# The parts of script/test: which examples run, in which processes, and what is reported about them.
module TestRun
  # A way to run specs: the environment, and which examples depend on it. Examples opt in with a tag of the lane's name,
  # as metadata on themselves or on their group. For `needs` and `urgent` see {Job#initialize}.
  Lane = Struct.new(:name, :about, :environment, :needs, :urgent, keyword_init: true) do
    def initialize(needs: [], **)
      super
    end

    # @param tags [Array<Symbol>] of an example
    # @param slow [Boolean] whether slow examples run, too
    def runs?(tags, slow:)
      return false if tags.include?(:slow) && !slow

      name == "specs" ? !tags.intersect?(Lane::ELSEWHERE) : tags.include?(name.to_sym)
    end

    # @return [Array<String>] the options with which rspec runs the same examples
    def filter(slow:)
      tags = name == "specs" ? Lane::ELSEWHERE.map { |tag| "~#{tag}" } : [name]
      tags += ["~slow"] unless slow
      tags.flat_map { |tag| ["--tag", tag] }
    end

    # @return [String] in shell syntax, followed by a space; or nothing
    def prefix
      environment.map { |name, value| "#{name}=#{value.shellescape} " }.join
    end
  end

  faulty = File.expand_path("../../tmp/faults/#{RUBY_PLATFORM}/#{RUBY_VERSION}", __dir__)

  LANES = [
    Lane.new(name: "specs", about: "all examples, as users run the gem", environment: {}),
    Lane.new(name: "repository", about: "the repository's own tools, which need no other Ruby", environment: {}),
    Lane.new(name: "liveness", about: "deaths noticed by FREEOBJ, not by mark bits",
             environment: { "SPEC_LIVENESS" => "freeobj" }),
    Lane.new(name: "moving", about: "objects move in each major garbage collection",
             environment: { "SPEC_GC" => "compact" }),
    Lane.new(name: "stress", about: "a garbage collection at each allocation of collectors' own methods",
             environment: { "SPEC_GC" => "stress" }),
    Lane.new(name: "jit", about: "with YJIT, which compiles at the first call",
             environment: { "RUBYOPT" => "--yjit --yjit-call-threshold=1" }),
    Lane.new(name: "threads", about: "with M:N threads, which Ruby has from 3.3 on",
             environment: { "RUBY_MN_THREADS" => "1" }),
    Lane.new(name: "faults", about: "a library in which faults can be provoked",
             environment: { "SPEC_FAULTS" => faulty }, needs: ["compile:faults"]),
    Lane.new(name: "docs", about: "the commands of the pages in docs/",
             environment: { "SPEC_DOCS" => "1" }, urgent: true)
  ].to_h { |lane| [lane.name, lane] }.freeze

  # Tags of examples that only their own lane runs.
  Lane::ELSEWHERE = %i[repository faults docs].freeze

  # @return [Array<String>] the names of the lanes that this Ruby can run
  def self.lanes_here
    without = []
    without << "jit" unless system(RbConfig.ruby, "--yjit", "-e", "exit RubyVM::YJIT.enabled?", err: File::NULL)
    without << "threads" if RUBY_VERSION < "3.3"
    # What its table of call caches gets between two steps of a compaction (vm_eval.c `gccct_method_search_slowpath`) is
    # not pinned, nor is the table updated: once in some hundred runs rb_vm_mark crashes.
    without << "moving" if RUBY_VERSION < "3.2"
    LANES.keys - without
  end
end
