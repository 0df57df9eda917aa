# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/retainers/records"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  # Who holds the sampled objects of a process: by the line that allocated them, the constants, variables, threads and
  # so on that keep them alive. {Collector#retainers} returns one, {load} reads one that was recorded.
  #
  # What a site has is estimated from its samples; what a holder retains is exact, if it is known. Nothing tells what an
  # object contains, apart from Symbols that are keys.
  #
  # @example
  #   MemprofilerPprof.retainers(site: "app/models/cart.rb:11").sites.each do |site|
  #     puts site.name, site.holders.map(&:phrase)
  #   end
  class Retainers
    class << self
      # Reads what {#write} or the setting `retainers_every` has written. It knows the paths, but not what they retain.
      #
      # @param source [String, #to_path, #read] as for {Profile.load}
      # @param site [String, nil] as for {Collector#retainers}
      # @param class_name [String, nil] likewise
      # @param limit [Integer] likewise
      # @return [Retainers]
      # @raise [ProfileError] if it is no profile of references; otherwise as {Profile.load}
      def load(source, site: nil, class_name: nil, limit: 10)
        of(Profile.load(source), site: site, class_name: class_name, limit: limit)
      end

      # @param profile [Profile]
      # @return [Retainers] see {load}
      # @raise [ProfileError]
      # @api private
      def of(profile, **question)
        raise ProfileError, "not a profile of references, as `why` writes them" unless RetainersFile.holds?(profile)

        # Loaded only here, since a process that is asked does not need it.
        require "ruby_memprofiler_pprof/retainers/recording"
        recording = Recording.new(profile, **question)
        new(recording.to_h, recording.profile.to_pprof)
      end
    end

    # @return [String] the paths of references to the sampled objects: gzipped pprof, binary. A stack is a path that
    #   begins at the root; the labels `site` and `class` say what was allocated where
    attr_reader :pprof_data

    # @param answer [String, Hash{Symbol => Object}] JSON, or what it says
    # @param pprof_data [String]
    # @api private
    def initialize(answer, pprof_data)
      @answer = answer
      @pprof_data = pprof_data
    end

    # @return [Array<Site>] those with the most bytes first
    def sites
      @sites ||= data.fetch(:sites).map { |site| Site.of(site) }.freeze
    end

    # @return [Array<Largest>] the objects that keep the most memory alive, five at most, those with the most first;
    #   without any if certain objects were asked for, or it is from a file
    def largest
      @largest ||= (data[:largest] || []).map { |each| Largest.of(each) }.freeze
    end

    # @return [Integer, nil] how many objects the roots of the heap reach; this and what follows is nil if not known
    def objects
      data[:objects]
    end

    # @return [Integer, nil] the bytes of these objects
    def bytes
      data[:bytes]
    end

    # @return [Integer, nil] the references between them
    def references
      data[:edges]
    end

    # @return [Integer, nil] the sampled objects whose holders were looked for
    def samples
      data[:samples]
    end

    # @return [Unreachable, nil] the sampled objects that nothing reaches: garbage, or what only a finalizer keeps
    def unreachable
      Unreachable.of(data[:unreachable]) if data[:unreachable]
    end

    # @return [Integer, nil] sampled objects that were left out, since the lines that allocated them are not known yet
    def unnamed_samples
      data[:unnamed_samples]
    end

    # @return [Integer, nil] the id of the process
    def pid
      data[:pid]
    end

    # @return [Time, nil] when it was asked
    def time
      nanoseconds = data[:time_nanoseconds]
      Time.at(0, nanoseconds, :nanosecond) if nanoseconds
    end

    # @return [Float, nil] for how many seconds the program stood still while its process was copied
    def pause
      seconds(:pause_nanoseconds)
    end

    # @return [Float, nil] for how many seconds no other thread could run, if it was done in the process itself
    def held
      seconds(:held_nanoseconds)
    end

    # @return [Float, nil] how many seconds the answer took
    def elapsed
      seconds(:elapsed_nanoseconds)
    end

    # @return [Integer, nil] how many copies of the process it took; 2 if the first one did not answer
    def attempts
      data[:attempts]
    end

    # @return [Boolean] whether it was done in the process itself, rather than in a copy
    def in_process?
      data[:in_process] ? true : false
    end

    # @return [Profile] the paths, see {#pprof_data}
    def profile
      Profile.load(pprof_data)
    end

    # Writes the profile to a file that only its owner can read, replacing an existing one.
    #
    # @param path [String, #to_path]
    # @return [Integer] the number of bytes written
    # @raise [SystemCallError] if the file cannot be written
    def write(path)
      AtomicFile.write(path, pprof_data)
      pprof_data.bytesize
    end

    # @return [String] JSON; docs/who-holds-it.md describes it
    def to_json(*)
      require "json"
      @answer.is_a?(String) ? @answer : JSON.generate(@answer)
    end

    # @param style [Report::Style, nil] nil is for files and pipes
    # @return [String] what `memprofiler why` prints
    def to_s(style = nil)
      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/report"
      Report::Retainers.new(self).to_s(style || Report::PLAIN)
    end

    # @return [String] for people
    def inspect
      "#<#{self.class} #{sites.size} sites, #{pprof_data.bytesize} bytes>"
    end

    private

    # The JSON is read at the first question only: the profile by itself needs none.
    def data
      @data ||= @answer.is_a?(String) ? parse : @answer
    end

    def parse
      require "json"
      JSON.parse(@answer, symbolize_names: true)
    end

    def seconds(name)
      data[name]&.fdiv(1_000_000_000)
    end
  end
end
