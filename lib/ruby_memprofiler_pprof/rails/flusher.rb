# frozen_string_literal: true

require "active_support/notifications"
require "ruby_memprofiler_pprof/file_flusher"

module MemprofilerPprof
  module Rails
    # Writes files, and instruments each for ActiveSupport::Notifications:
    #
    # - `flush.memprofiler_pprof` when a file is there. The payload has `path`, `profile` (the {ProfileData}) and `pid`
    # - `flush_failed.memprofiler_pprof` when a profile is lost, with `message`, `pid`, and as everywhere in Rails
    #   `exception` (the names of the class, and the error's message) and `exception_object`
    #
    # Subscribers are called in the flusher's thread, within the app's executor; what they raise is logged.
    # @api private
    class Flusher < FileFlusher
      private

      def written(path, profile)
        super
        notify("flush.memprofiler_pprof", path: path, profile: profile)
      end

      def failed(error, message)
        super
        notify("flush_failed.memprofiler_pprof",
               message: message, exception: [error.class.name, error.message], exception_object: error)
      end

      def notify(event, **payload)
        return unless ActiveSupport::Notifications.notifier.listening?(event)

        ::Rails.application.executor.wrap do
          ActiveSupport::Notifications.instrument(event, pid: Process.pid, **payload)
        end
      rescue *SURVIVABLE => e
        log(:error, "a subscriber of #{event} failed: #{e.class}: #{e.message} (#{e.backtrace&.first})")
      end
    end
  end
end
