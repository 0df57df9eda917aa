# frozen_string_literal: true

module MemprofilerPprof
  class Retainers
    # What a profile of references says. It has the paths, but neither what they retain nor where objects accumulate: a
    # holder is what refers to the objects themselves, with the path to it.
    # @api private
    class Recording
      # The values of a sample.
      VALUES = %i[retained_objects retained_size].freeze
      # How many holders of a site are told, as by a process.
      HOLDERS = 10
      private_constant :VALUES, :HOLDERS

      # A line as a question names it.
      Place = Struct.new(:text) do
        # @param site [String]
        # @return [Boolean] whether that is the line, or one of the file; a path can begin at any of its directories
        def ===(other)
          [other, other.sub(/:\d+\z/, "")].any? { |name| name == text || name.end_with?("/#{text}") }
        end
      end
      private_constant :Place

      # @return [Profile] the samples that were asked for
      attr_reader :profile

      # @param profile [Profile]
      # @param site [String, nil]
      # @param class_name [String, nil]
      # @param limit [Integer]
      def initialize(profile, site: nil, class_name: nil, limit: 10)
        patterns = { site: (Place.new(site) if site), class: class_name }.compact
        @profile = patterns.empty? ? profile : profile.tag(**patterns)
        @limit = limit
        names = profile.sample_types.map { |type| type.name.to_sym }
        @columns = VALUES.map { |name| names.index(name) || raise(ProfileError, "the profile has no #{name}") }
      end

      # @return [Hash{Symbol => Object}] in the form of a process's answer
      def to_h
        pid = profile.comments.filter_map { |comment| comment[/\Apid=(\d+)\z/, 1] }.first&.to_i
        { pid: pid, time_nanoseconds: profile.time&.then { |time| (time.to_r * 1_000_000_000).to_i },
          sites: largest.map { |name, paths| site(name, paths) } }
      end

      private

      # The paths of each site, those with the most bytes first.
      def largest
        sites = profile.samples.group_by { |sample| sample.labels["site"].to_s }
        sites.max_by(@limit) { |_, paths| paths.sum { |path| bytes(path) } }
      end

      def site(name, paths)
        file, line = name.match(/\A(.+):(\d+)\z/)&.captures
        of_site = profile.tag(site: name)
        objects, bytes = VALUES.map { |type| of_site.total(type) }
        all = holders(paths, bytes.value)
        others = all.drop(HOLDERS)
        { name: name, file: file, line: line&.to_i, samples: objects.samples&.round, objects: objects.to_h,
          bytes: bytes.to_h, classes: classes(paths), unreachable_bytes: nil, holders: all.first(HOLDERS),
          other_holders: others.size, other_holders_bytes: others.sum(0.0) { |holder| holder[:bytes] } }
      end

      def classes(paths)
        sums = paths.each_with_object(Hash.new(0)) { |path, all| all[path.labels["class"].to_s] += bytes(path) }
        sums.max_by(3, &:last).map { |name, bytes| { name: name, bytes: bytes } }
      end

      def holders(paths, total)
        holders = paths.group_by { |path| referrers(path) }.map { |stack, same| holder(stack, same, total) }
        holders.sort_by { |holder| [-holder[:bytes], holder[:phrase]] }
      end

      # Without the object, unless there is nothing else.
      def referrers(path)
        path.stack.size > 1 ? path.stack.drop(1) : path.stack
      end

      def holder(stack, paths, total)
        objects, bytes = @columns.map { |column| paths.sum { |path| path.values[column] } }
        chain = stack.reverse.map { |frame| link(frame) }
        largest = paths.max_by { |path| bytes(path) }.stack
        { share: total.zero? ? 0.0 : bytes.fdiv(total), objects: objects, bytes: bytes, phrase: phrase(chain),
          chain: chain, example: largest.size > 1 ? [link(largest.first)] : [] }
      end

      def link(frame)
        { text: frame.name, phrase: frame.name, file: (frame.file unless frame.file.empty?),
          line: (frame.line if frame.line.positive?) }
      end

      # Without the beginning, where more follows: it is named again.
      def phrase(chain)
        chain.drop(chain.size > 1 ? 1 : 0).map { |link| link[:phrase] }.join(", ")
      end

      def bytes(sample)
        sample.values[@columns.last]
      end
    end
  end
end
