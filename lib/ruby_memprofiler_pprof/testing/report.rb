# frozen_string_literal: true

require "ruby_memprofiler_pprof/report/path_shortener"
require "ruby_memprofiler_pprof/report/units"

module MemprofilerPprof
  module Testing
    # Text for failure messages.
    # @api private
    module Report
      # How many places are shown, and how many frames of each.
      SITES = 5
      FRAMES = 4
      # Directories of code that is not the project's own, even if they are below the project's directory.
      FOREIGN = %r{/(?:gems|vendor|rubylibs?|\.bundle)/}
      private_constant :SITES, :FRAMES, :FOREIGN

      class << self
        # The places that allocate most, with the call paths that lead there.
        #
        # @param samples [Array<Sample>]
        # @param values [Hash{Symbol => Symbol}] the names of the values that are the :objects and the :bytes
        # @param by [Symbol] the name of the value that counts
        # @param calls [Integer, nil] how many calls there were, to show objects per call
        # @return [String]
        def sites(samples, values, by:, calls: nil)
          sites = samples.group_by { |sample| [sample.class_name, sample.frames] }
                         .map { |(class_name, frames), group| site(class_name, frames, group, values, by) }
                         .reject { |site| site[:by].zero? }.sort_by { |site| -site[:by] }
          lines = sites.first(SITES).map { |site| "#{heading(site, calls)}\n#{path(site[:frames])}" }
          lines << rest(sites.drop(SITES)) if sites.size > SITES
          lines.join("\n")
        end

        # Saves a profile.
        #
        # @param profile [ProfileData]
        # @param value [Symbol] the value to look at
        # @return [String] where it is now
        def saved(profile, value)
          path = Testing.save(profile)
          return "profile: #{path}" unless File.file?(path)

          path = inner(path)
          "profile: #{path}\n         go tool pprof -sample_index=#{value} -traces #{path}"
        end

        # @return [String] such as "1,234 objects"
        def objects(number, noun = "object")
          number = number.round(2)
          number = number.to_i if number.to_i == number
          "#{grouped(number)} #{noun}#{"s" unless number == 1}"
        end

        # @return [String] such as "12.3 KiB"
        def bytes(number)
          number < 10_240 ? objects(number, "byte") : MemprofilerPprof::Report::Units.bytes(number)
        end

        private

        def site(class_name, frames, group, values, by)
          sum = ->(value) { group.sum { |sample| sample.values.fetch(value) } }
          { class_name: class_name, frames: frames, by: sum[by], **values.transform_values(&sum) }
        end

        def heading(site, calls)
          per_call = format(" (%.2f per call)", site[:objects].fdiv(calls)) if calls
          "  #{objects(site[:objects])}#{per_call}, #{bytes(site[:bytes])}: #{site[:class_name]}"
        end

        def rest(sites)
          "  and #{objects(sites.sum { |site| site[:objects] })}, #{bytes(sites.sum { |site| site[:bytes] })} " \
            "from #{sites.size} more places"
        end

        # The project's own frames first; where the innermost is not among them, it comes last.
        def path(frames)
          own = frames.select { |frame| own?(frame.file) }
          shown = own.empty? ? frames.first(FRAMES) : own.first(FRAMES)
          lines = shown.map { |frame| "    #{position(frame)} in #{frame.name}" }
          innermost = frames.first
          lines << "    allocated in #{innermost.name} at #{position(innermost)}" unless shown.include?(innermost)
          lines.join("\n")
        end

        def own?(file)
          inner = inner(file)
          inner != file && !FOREIGN.match?("/#{inner}")
        end

        def position(frame)
          "#{inner(frame.file)}:#{frame.line}"
        end

        # The name from the current directory on, if the file is below that.
        def inner(file)
          file.delete_prefix(MemprofilerPprof::Report::PathShortener.current_directory.to_s)
        end

        def grouped(number)
          number.to_s.sub(/\d+/) { |digits| digits.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",") }
        end
      end
    end
  end
end
