# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/formatted"
require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `diff`.
    class Diff < ProfileCommand
      include Formatted

      SUMMARY = "show what has grown between two profiles"
      USAGE = "[OPTION]... [OLD NEW | DIRECTORY]"
      DESCRIPTION = <<~TEXT
        Shows what has changed most from one profile of a process to a later one, and the probability that it really grew
        (GREW), each line by itself. Samples that are alive in both cancel out. Growth between two moments need not be a
        leak; to find one, take a series of profiles and see leaks. OLD or NEW can be - for stdin. Of a directory, without
        any argument tmp/profiles, the first and the last profile of the process that wrote last are compared, one with at
        least two there.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} old.pprof new.pprof
        %{me} --by class --value retained_objects old.pprof new.pprof
      TEXT
      # Whether --app is the default.
      APP = false

      private

      def define_options(parser)
        super
        define_format(parser)
        parser.on("--value NAME", "what to compare, such as retained_objects",
                  "(default: the profile's, retained_size)") { |value| @value = value }
      end

      def files(arguments)
        directory = arguments.first
        return super unless arguments.one? && File.directory?(directory)

        found = super
        raise Failure, "no profiles in #{directory}" if found.empty?
        return found if found.size == 2

        files, which = choose(found)
        tell "#{which} in #{directory}"
        files
      end

      # What was named is meant.
      def beside?(file)
        found?(file) && super
      end

      def show(files)
        raise Failure, "two profiles are needed, got #{files.size}, see #{@invocation} --help" unless files.size == 2

        old, new = load_both(files)
        totals = MemprofilerPprof::Report::Totals.new(new)
        options = { by: @by || :line, type: @value, limit: @limit }
        difference = MemprofilerPprof::Report::Difference.new(filter(old), filter(new), **options)
        section = difference.section(title: "#{files.map { |file| name(file) }.join(" -> ")}#{elapsed(old, new)}",
                                     notes: totals.notes + comparison(old, new, difference) + no_match,
                                     data: { totals: totals.to_h })
        print_document(files, [section])
      end

      def load_both(files)
        profiles = files.map { |file| load(file) }
        references = profiles.map { |profile| RetainersFile.holds?(profile) }
        return profiles unless references.one?

        raise Failure, "#{name(files[references.index(true)])} has references, which cannot be compared with other " \
                       "profiles, see why --help"
      end

      # The first and the last one of the process that wrote the newest, of the processes that have written several.
      def choose(found)
        read = read_each(found) { |profile| about(profile) }.to_h
        written_last = Inputs.newest(read.keys)
        newest, = read[written_last]
        raise Failure, "#{name(written_last)} does not say its process: name two files" if newest.empty?

        several = of_several(read)
        raise Failure, "two profiles of process #{newest.first} are needed, got 1: name two files" if several.empty?

        process, = several[Inputs.newest(several.keys)]
        of_process = several.select { |_, (writer, _)| writer == process }.sort_by { |file, (_, time)| [time, file] }
        [of_process.values_at(0, -1).map(&:first),
         "the first and the last of #{of_process.size} profiles of process #{process.first}"]
      end

      # Without those of processes that have written only one, such as a child that did not live long.
      def of_several(read)
        read.select { |_, (process, time)| process.any? && time }
            .group_by { |_, (process, _)| process }.values.reject(&:one?).flatten(1).to_h
      end

      # What identifies its process, and its time.
      def about(profile)
        [MemprofilerPprof::Report::Totals.new(profile).process.to_a, profile.time]
      end

      def elapsed(old, new)
        return unless old.time && new.time

        seconds = new.time - old.time
        ", #{seconds.abs.round(seconds.abs < 10 ? 1 : 0)} s #{seconds.negative? ? "earlier" : "later"}"
      end

      # What concerns both: how much memory they differ by, and why a difference may mean little.
      def comparison(old, new, difference)
        totals = [old, new].map { |profile| MemprofilerPprof::Report::Totals.new(profile) }
        codes = MemprofilerPprof::Report::Codes
        change = MemprofilerPprof::Report::MemoryChange.new(*totals.map(&:memory)).sentence
        MemprofilerPprof::Report::Note.list(codes::RESIDENT_CHANGE => change,
                                            codes::INCOMPLETE => incomplete(totals.first),
                                            codes::DIFFERENT_PROCESSES => different_processes(totals),
                                            codes::DIFFERENT_INTERVALS => different_intervals(old, new, difference))
      end

      def incomplete(old)
        return unless old.incomplete?

        "The old profile was written while Ruby did not answer: what it lacks looks like growth."
      end

      def different_processes(totals)
        return if totals.map(&:process).reduce(:==)

        "These are of different processes, or the profiler was restarted in between, so growth means little."
      end

      def different_intervals(old, new, difference)
        short, long = [old.duration, new.duration].minmax
        return if difference.retained? || long - short <= MemprofilerPprof::Report::Births::TOLERANCE * long

        "Their intervals have #{old.duration.round(1)} s and #{new.duration.round(1)} s: more happens in a longer one."
      end
    end
  end
end
