# frozen_string_literal: true

require "ruby_memprofiler_pprof/on_demand"

module MemprofilerPprof
  module Rack
    # What the processes of a {Cluster} have answered, and which of them have not.
    # @api private
    class Answers
      # The header of a response that names the processes without an answer.
      MISSING = "x-memprofiler-missing"
      private_constant :MISSING

      # @param bodies [Hash{Integer => String}] at least one, by process id
      # @param refusals [Hash{Integer => StandardError}] why there is none, by process id
      def initialize(bodies, refusals)
        @bodies = bodies
        @refusals = refusals
      end

      # @return [String] the processes, such as "Process 7" or "3 processes (7, 8, 9)", and what has kept others from
      #   answering
      def subject
        pids = @bodies.keys
        processes = pids.size == 1 ? "Process #{pids.first}" : "#{pids.size} processes (#{pids.join(", ")})"
        missing = @refusals.map { |pid, refusal| "without #{pid}: #{refusal.message.delete_suffix(".")}" }
        [processes, *missing].join("; ")
      end

      # @return [Array<String>] answers that are text. Those of other processes come as bytes
      def texts
        bodies.map { |body| body.dup.force_encoding(Encoding::UTF_8) }
      end

      # @return [Array<String>]
      def bodies
        @bodies.values
      end

      # @return [Profile] the sum of all
      def profile
        merge(bodies)
      end

      # @return [Array(Profile, Profile)] the sums of the profiles that are to be compared
      def pair
        bodies.map { |body| OnDemand.split(body) }.transpose.map { |profiles| merge(profiles) }
      end

      # @return [String] the bytes of the sum
      def bytes
        bodies.size == 1 ? bodies.first : profile.to_pprof
      end

      # @param response [Array] for Rack
      # @return [Array] the same, with a header that names the processes without an answer
      def mark((status, headers, body))
        headers = { **headers, MISSING => @refusals.keys.join(", ") } if @refusals.any?
        [status, headers, body]
      end

      private

      def merge(profiles)
        Profile.merge(profiles.lazy.map { |profile| Profile.load(profile) })
      end
    end
  end
end
