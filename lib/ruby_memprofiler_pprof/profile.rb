# frozen_string_literal: true

require "ruby_memprofiler_pprof/read_ahead"
require "ruby_memprofiler_pprof/window_groups"
require "ruby_memprofiler_pprof/profile/records"
require "ruby_memprofiler_pprof/profile/source"
require "ruby_memprofiler_pprof/profile/contents"
require "ruby_memprofiler_pprof/profile/aggregation"
require "ruby_memprofiler_pprof/profile/formats"

module MemprofilerPprof
  # A profile that was written by this gem, or by any other program that writes pprof. It is immutable: methods that
  # combine or filter profiles return a new one. No collector is needed. Long operations let other threads run, and can
  # be interrupted by Timeout or a signal.
  #
  # @example What has grown between two profiles of a process
  #   old, new = %w[old.pprof new.pprof].map { |path| MemprofilerPprof::Profile.load(path) }
  #   new.diff(old).top(by: :line, limit: 10).each { |site| puts "#{site.flat} #{site.name}" }
  #
  # @!method ==(other)
  #   @return [Boolean] whether both have the same header and the same samples, in any order
  # @!method difference?
  #   @return [Boolean] whether it comes from {#diff}, or from a file of such a profile or of `go tool pprof -proto
  #     -diff_base`, so that values can be negative
  # @!method sampled_in_windows?
  #   @return [Boolean] whether some of its samples were taken in windows, which makes intervals wider for what comes in
  #     bursts
  class Profile
    # How many bytes a profile may have when decompressed, by default.
    MAX_BYTES = 268_435_456

    class << self
      # Reads a profile in pprof's format, gzipped or not.
      #
      # @param source [String, #to_path, #read] the name of a file; an IO or the like; or the bytes of a profile. A
      #   String with a null byte is the latter: each profile has one, and no file name can
      # @param max_bytes [Integer] the most that the profile may have when decompressed, up to 4294967295. It takes a
      #   few times as much memory, or more than a hundred times if it was made to: see docs/security.md
      # @return [Profile]
      # @raise [ProfileError] naming the file and the place if it is not a valid profile, or is too big; naming the
      #   bound if its inlined functions or long names would expand to far more frames or text than it has bytes
      # @raise [SystemCallError] if the file cannot be read
      # @raise [TypeError, ArgumentError] if an argument is something else
      def load(source, max_bytes: MAX_BYTES)
        Source.new(source, max_bytes).read { |bytes| decode(bytes, max_bytes) }
      end

      # Reads several profiles ahead of the block: while it has one, as many more as there are processors, at most 4.
      #
      # @example The sum of many, with only these few in memory at a time
      #   MemprofilerPprof::Profile.merge(MemprofilerPprof::Profile.load_each(Dir["tmp/profiles/*.pprof"]))
      # @param sources [Enumerable] see {load}
      # @param max_bytes [Integer] see {load}
      # @yieldparam profile [Profile] each, in the order of the sources
      # @return [Enumerator<Profile>, nil] an Enumerator if there is no block
      # @raise as {load} does, at the first source that cannot be read
      def load_each(sources, max_bytes: MAX_BYTES, &block)
        raise TypeError, "sources must be enumerable, got #{sources.inspect}" unless sources.respond_to?(:each)
        return to_enum(:load_each, sources, max_bytes: max_bytes) unless block

        ReadAhead.new(sources) { |source| load(source, max_bytes: max_bytes) }.each(&block)
        nil
      end

      # Adds up profiles of several processes, or of one at several times. Samples with the same stack and labels
      # become one; the time is the earliest, the duration the sum, and the comments those of all, besides `merged`
      # with the number of profiles.
      #
      # @param profiles [Enumerable<Profile>] at least one; read lazily, so that only a few are in memory
      # @return [Profile]
      # @raise [ProfileError] if their sample types differ, naming which
      def merge(profiles)
        raise TypeError, "profiles must be enumerable, got #{profiles.inspect}" unless profiles.respond_to?(:each)

        first = sum = nil
        profiles.each do |profile|
          check(profile)
          next first = profile unless first

          sum ||= Sum.new(first)
          sum.add(profile)
        end
        raise ArgumentError, "profiles must be at least one, got #{profiles.inspect}" unless first

        sum ? sum.profile : first
      end

      # @api private
      def check(profile)
        raise TypeError, "expected a #{name}, got #{profile.inspect}" unless profile.is_a?(self)
      end

      private :decode, :check
    end

    private_constant :Sum

    include Contents
    include Aggregation
    include Formats

    # @param others [Array<Profile>]
    # @return [Profile] see {Profile.merge}
    def merge(*others)
      self.class.merge([self, *others])
    end

    # What this profile has more, or less, than another. Time and duration remain those of this one. Written as pprof,
    # it has what was subtracted as samples of their own, with the label `pprof::base`, as `go tool pprof` does it.
    #
    # @param base [Profile]
    # @return [Profile]
    # @raise [ProfileError] if their sample types differ
    def diff(base)
      self.class.__send__(:check, base)
      native_diff(base)
    end

    # @param pattern [Regexp]
    # @return [Profile] the samples in whose stacks the name or file of a function matches
    def focus(pattern)
      native_filter_frames(false, matches(pattern))
    end

    # @param pattern [Regexp]
    # @return [Profile] the samples in whose stacks no name or file of a function matches
    def ignore(pattern)
      native_filter_frames(true, matches(pattern))
    end

    # Leaves the frames of gems and of Ruby out, so that what these allocate counts for the line of the program that
    # called them. A stack without a frame of the program's own stays as it is.
    #
    # @return [Profile]
    def without_libraries
      native_without_libraries
    end

    # @example
    #   profile.tag(class: /\AActiveRecord::/, gc_age: 8..)
    # @param patterns [Hash{Symbol, String => #===}] what the value of each label must match: a String, Regexp, Range, …
    # @return [Profile] the samples that have all these labels with such values
    def tag(**patterns)
      sets = native_label_sets.map do |labels|
        patterns.all? { |key, pattern| labels.any? { |name, value| name == key.to_s && tagged?(pattern, value) } }
      end
      native_filter_labels(sets)
    end

    # @return [String] for people
    def to_s
      "#<#{self.class} #{native_sample_count} samples of #{sample_types.join(", ")}>"
    end
    alias inspect to_s

    private

    def matches(pattern)
      raise TypeError, "pattern must be a Regexp, got #{pattern.inspect}" unless pattern.is_a?(Regexp)

      native_frame_names.map { |names| !names.nil? && names.any? { |name| pattern.match?(name) } }
    end

    def tagged?(pattern, value)
      pattern === value || (pattern.is_a?(Regexp) && pattern.match?(value.to_s)) # rubocop:disable Style/CaseEquality
    end
  end
end
