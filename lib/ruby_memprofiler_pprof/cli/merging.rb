# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # Adding up what several files have, for commands that read {Inputs}.
    module Merging
      private

      # Says which of the files that were named are left out.
      def profiles_of(files)
        super.tap do |profiles|
          named = (files - profiles).reject { |file| found?(file) }
          next if named.empty?

          which = named.one? ? name(named.first) : "#{named.size} files"
          tell "left out #{which}: peaks and references are not added to other profiles"
        end
      end

      # Leaves out, and tells, what was found in a directory and has other values than the first profile, as one of CPU
      # time has. That of a file that was named is refused when they are added up.
      #
      # @param pairs [Enumerator::Lazy] of Arrays: a file and its profile
      # @return [Enumerator::Lazy] likewise
      def alike(pairs)
        first = nil
        pairs.select do |file, profile|
          first ||= [file, types(profile)]
          next true if types(profile) == first.last || !found?(file)

          tell "left out #{name(file)}: its sample types are not those of #{name(first.first)}"
          false
        end
      end

      def types(profile)
        profile.sample_types.map(&:to_a).sort
      end

      # @param files [Array<String>]
      # @param profiles [Enumerable<Profile>] of each
      # @return [Profile] their sum
      # @raise [ProfileError] that names the file that cannot be added
      def merge(files, profiles)
        Profile.merge(profiles)
      rescue ProfileError => e
        numbered = /\Aprofile (?<number>\d+) (?<refused>cannot be merged with) the first/.match(e.message)
        raise unless numbered

        file = name(files[Integer(numbered[:number]) - 1])
        raise ProfileError, "#{file} #{numbered[:refused]} #{name(files.first)}#{numbered.post_match}"
      end
    end
  end
end
