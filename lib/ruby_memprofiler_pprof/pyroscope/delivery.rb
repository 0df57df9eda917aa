# frozen_string_literal: true

module MemprofilerPprof
  class Pyroscope
    # Brings one profile after another to the server, and tries again what may pass.
    # @api private
    class Delivery
      # The longest wait in seconds between two attempts.
      LONGEST_WAIT = 60
      private_constant :LONGEST_WAIT

      # @return [String, nil] why the last attempt has failed; nil if it has not. Any thread may ask
      attr_reader :problem

      # @param client [Client]
      # @param retries [Integer] as for {Pyroscope#initialize}
      # @param retry_wait [Numeric] seconds, likewise
      def initialize(client, retries:, retry_wait:)
        @client = client
        @retries = retries
        @retry_wait = retry_wait
      end

      # Forgets {#problem}.
      # @return [void]
      def reset
        @problem = nil
      end

      # Returns when the profile is sent, or given up: then there is a {#problem}.
      # @param name [String] of the series
      # @param profile [ProfileData]
      # @return [Integer] how many attempts it has taken
      def call(name, profile)
        bytes = profile.pprof_data
        (0..@retries).each do |attempt|
          answer = @client.post(name, profile, bytes)
          @problem = (answer.to_s unless answer.accepted?)
          return attempt + 1 unless @problem && answer.passing? && attempt < @retries

          sleep(wait(attempt, answer.retry_after))
        end
      end

      private

      # Exponential backoff with jitter, so that many processes do not retry at once when a server comes back.
      def wait(attempt, retry_after)
        seconds = [@retry_wait * (2**attempt), LONGEST_WAIT].min * (0.5 + rand)
        retry_after ? [seconds, [retry_after, LONGEST_WAIT].min].max : seconds
      end
    end
  end
end
