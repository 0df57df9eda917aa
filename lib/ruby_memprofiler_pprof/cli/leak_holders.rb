# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/retainers_sources"

module MemprofilerPprof
  class CLI
    # Who holds what the lines that grow have allocated, for `leaks --why`: as the running process says, or as was
    # recorded beside its profiles.
    class LeakHolders
      # How many sites a process is asked for: one with less than the first hundred matters little.
      SITES = 100
      NOT_RECORDED = "No holders: none were recorded beside these profiles. The setting retainers_every does that; " \
                     "the process's socket or URL as an argument asks it."
      private_constant :SITES, :NOT_RECORDED

      # @param addresses [Array<String>] of running processes; without any, recordings are read
      # @param headers [Hash{String => String}]
      # @yieldparam file [String]
      # @yieldreturn [Profile] what is in it
      def initialize(addresses, headers, &load)
        @addresses = addresses
        @headers = headers
        @load = load
        @failures = []
      end

      # @param leaks [MemprofilerPprof::Report::Leaks] of a process
      # @param pid [Integer, nil] its id; nil if it has ended
      # @param files [Array<String>] its profiles, the newest first
      # @return [Array] a Hash with the main holders by site, and notes on where they are from; both empty if nothing
      #   grows
      def of(leaks, pid, files)
        names = leaks.rising.map { |finding| finding.growth.site.name }
        return [{}, []] if names.empty?

        retainers, source = ask(pid, files)
        holders = retainers ? main(retainers, names) : {}
        missing = names - holders.keys
        source += " None is known of #{missing.join(", ")}." if retainers && missing.any?
        [holders, notes(source)]
      end

      private

      def ask(pid, files)
        pid.nil? || @addresses.empty? ? recorded(files) : live(pid)
      end

      def main(retainers, names)
        holders = retainers.sites.to_h { |site| [site.name, site.holders.first] }
        holders.slice(*names).compact
      end

      # @return [Array(Retainers, String)] nil if there are none, and a sentence about that
      def recorded(files)
        file = files.map { |path| RetainersFile.beside(path) }.find { |path| File.file?(path) }
        return [nil, NOT_RECORDED] unless file

        retainers = Retainers.of(@load.call(file), limit: SITES)
        [retainers, "Holders are those recorded in #{file}, #{retainers.time&.getutc&.strftime("%F %T UTC")}."]
      rescue ProfileError => e
        [nil, "No holders: #{e.message}."]
      end

      def live(pid)
        retainers = asked.find { |each| each.pid == pid } || (asked.first if asked.size == 1 && asked.first.pid.nil?)
        retainers ? [retainers, "Holders are those of now, in process #{pid}."] : [nil, "No holders: #{reason(pid)}."]
      end

      def reason(pid)
        return @failures.join("; ") if @failures.any?

        "#{@addresses.join(", ")} is of process #{asked.map(&:pid).join(", ")}, not of #{pid}"
      end

      # Once for all. What fails does not keep the report from being shown.
      def asked
        @asked ||= @addresses.flat_map do |address|
          RetainersSources.new(address, @headers, &@load).ask(limit: SITES).answers.values.flatten
        rescue Failure => e
          @failures << e.message
          []
        end
      end

      def notes(text)
        MemprofilerPprof::Report::Note.list(MemprofilerPprof::Report::Codes::HOLDERS => text)
      end
    end
  end
end
