# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Counts objects by site. Sites of different files may have the same name, such as a method's.
    #
    # @api private
    module Counts
      module_function

      # @param site [Profile::Site]
      # @return [Array(String, String), Array(String, nil)] what identifies it in several profiles
      def key(site)
        [site.name, site.file]
      end

      # @return [Hash{Array => Integer}] by {key}; 0 for sites that have none
      def of(profile, by, type)
        sum(profile.top(by: by, type: type))
      end

      # @return [Hash{Array => Integer}] the same for sites of a profile
      def sum(sites)
        sites.each_with_object(Hash.new(0)) do |site, counts|
          counts[key(site)] += site.flat.value if site.flat.value.positive?
        end
      end

      # @return [Hash{Array => Array<Float>}] what of them was sampled in windows, by group of windows
      def windows(sites)
        sites.each_with_object({}) do |site, sums|
          windows = site.flat.windows
          sums[key(site)] = windows if windows
        end
      end

      # @return [Boolean] whether the profile has the ages of objects
      def ages?(profile)
        profile.tag(gc_age: Integer).samples.size.positive?
      end
    end
  end
end
