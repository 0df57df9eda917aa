# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Counts objects by site.
    #
    # @api private
    module Counts
      module_function

      # @return [Hash{String => Integer}] 0 for sites that have none
      def of(profile, by, type)
        sum(profile.top(by: by, type: type))
      end

      # @return [Hash{String => Integer}] the same for sites of a profile
      def sum(sites)
        sites.each_with_object(Hash.new(0)) do |site, counts|
          counts[site.name] += site.flat.value if site.flat.value.positive?
        end
      end

      # @return [Hash{String => Array<Float>}] what of them was sampled in windows, by group of windows
      def windows(sites)
        sites.each_with_object({}) do |site, sums|
          windows = site.flat.windows
          sums[site.name] = WindowGroups.add(sums[site.name], windows) if windows
        end
      end

      # @return [Boolean] whether the profile has the ages of objects
      def ages?(profile)
        profile.tag(gc_age: Integer).samples.size.positive?
      end
    end
  end
end
