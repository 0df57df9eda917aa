# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/memory/records"
require "ruby_memprofiler_pprof/memory/advisor"
require "ruby_memprofiler_pprof/memory/form"

module MemprofilerPprof
  # Where the resident memory of a process is: a ledger whose lines add up to all of it. {current} asks this process,
  # {Collector#memory} with what a collector's samples know, {load} reads what each profile says.
  #
  # All sizes are in bytes.
  #
  # @example
  #   memory = MemprofilerPprof::Memory.current(full: true)
  #   memory.lines.each { |line| puts "#{line.name}: #{line.bytes}" }
  class Memory
    # How the comment of a profile begins that has the ledger.
    COMMENT = "memory="
    private_constant :COMMENT

    class << self
      # @param full [Boolean] whether to walk over the whole heap, which takes some milliseconds for each 10,000 objects
      # @return [Memory] of this process now
      # @raise [ArgumentError] if the argument is something else
      def current(full: false)
        Argument.one_of(:full, full, [true, false])
        ask(MemprofilerPprof.running? ? MemprofilerPprof.collector : MemprofilerPprof, full)
      end

      # @param source [String, #to_path, #read] as for {Profile.load}
      # @return [Memory] when the profile was taken
      # @raise [ProfileError] if the profile does not say; otherwise as {Profile.load}
      def load(source)
        of(Profile.load(source)) || raise(ProfileError, "the profile does not say where the memory was")
      end

      # @param profile [Profile]
      # @return [Memory, nil] nil if it says nothing, or, as the sum of several profiles, more than one thing
      # @api private
      def of(profile)
        found = profile.comments.select { |comment| comment.start_with?(COMMENT) }
        parse(found.first.delete_prefix(COMMENT)).first if found.size == 1
      rescue ProfileError
        nil
      end

      # @param json [String] one, or an Array of those of several processes
      # @param more [Hash{Symbol => Object}] what else is known of them
      # @return [Array<Memory>]
      # @raise [ProfileError] if it is something else
      # @api private
      def parse(json, **more)
        answers = [JSON.parse(json, symbolize_names: true)].flatten(1)
        raise ProfileError, "this does not say where memory is" unless answers.all? { |answer| Form.ledger?(answer) }

        answers.map { |answer| new({ **answer, **more }) }
      rescue JSON::ParserError => e
        raise ProfileError, "this does not say where memory is: #{e.message}"
      end

      # @param process [Collector, Module] what has the method `memory_data`
      # @api private
      def ask(process, full)
        attached_at = process.tags[Tags::ATTACHED] if process.is_a?(Collector)
        parse(process.__send__(:memory_data, full), **{ attached_at: attached_at }.compact).first
      end
    end

    # @return [Array<Line>] which add up to {#rss}, apart from those that are not known
    attr_reader :lines
    # @return [Array<HeldSlots>] the sites whose live objects keep the most free slots; empty if that is not known
    attr_reader :held_slots
    # @return [Limit, nil] nil if the memory of the process is not limited, or that is not known
    attr_reader :limit

    # @param data [Hash{Symbol => Object}] in the form of the extension
    # @api private
    def initialize(data)
      @data = data
      @lines = data.fetch(:lines).map { |line| Line.of(line) }.freeze
      @held_slots = (data[:held_slots] || []).map { |held| HeldSlots.new(*held.values_at(*HeldSlots.members)).freeze }
      @limit = Limit.of(data[:limit]) if data[:limit]
    end

    # @return [Integer, nil] the resident memory; this and what follows is nil if it is not known
    def rss = @data[:rss_bytes]

    # @return [Integer, nil] the most that was resident so far
    def peak_rss = @data[:peak_rss_bytes]

    # @return [Integer, nil] what was swapped out
    def swap = @data[:swap_bytes]

    # @return [Integer, nil] the line of what nothing explains
    def unexplained = @data[:unexplained_bytes]

    # @return [Integer, nil] pages that other processes use, too
    def shared_bytes = @data[:shared_bytes]

    # @return [Integer, nil] pages that only this process uses
    def private_bytes = @data[:private_bytes]

    # @return [Integer, nil] of these, what was shared when the process was forked: what copy-on-write has cost; nil
    #   once the parent has ended
    def copied_bytes = @data[:copied_bytes]

    # @return [Integer, nil] the pages of Ruby's heap in which no object is, which are among the free slots; only a walk
    #   knows them
    def empty_page_bytes = @data[:empty_page_bytes]

    # @return [String, nil] whose malloc it is, such as "glibc 2.36"
    def allocator = @data[:allocator]

    # @return [Integer, nil] the id of the process
    def pid = @data[:pid]

    # @return [Boolean] whether it comes from a walk over the whole heap
    def full? = @data[:full] ? true : false

    # @return [Time, nil] when it was asked
    def time = utc(:time)

    # @return [Time, nil] when `memprofiler attach` brought the profiler into the process
    def attached_at = utc(:attached_at)

    # @return [Float, nil] how many seconds the answer took
    def elapsed
      @data[:elapsed_nanoseconds]&.fdiv(1_000_000_000)
    end

    # @param key [Symbol] such as `:free_slots`
    # @return [Integer, nil] the bytes of that line
    def [](key)
      lines.find { |line| line.key == key }&.bytes
    end

    # @return [Array<Advice>] what to do about what is large, where that is known; about what is largest first
    def advice
      @advice ||= Advisor.advice(self).freeze
    end

    # @return [Hash{Symbol => Object}] for JSON; docs/where-memory-is.md describes it
    def to_h
      { **@data, lines: lines.map(&:to_h), advice: advice.map(&:to_h) }
    end

    # @return [String] JSON
    def to_json(*)
      JSON.generate(to_h)
    end

    # @param style [Report::Style, nil] nil is for files and pipes
    # @return [String] what `memprofiler memory` prints
    def to_s(style = nil)
      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/report"
      Report::Memory.new(self).to_s(style || Report::PLAIN)
    end

    # @return [String] for people
    def inspect
      "#<#{self.class} #{rss || "unknown"} bytes resident, #{lines.size} lines>"
    end

    private

    # @return [Time, nil] what it says under that name, in the form "2026-11-23T08:00:00Z"
    def utc(key)
      Time.utc(*@data[key].scan(/\d+/).first(6).map(&:to_i)) if @data[key]
    rescue ArgumentError
      # It is no time.
      nil
    end
  end
end
