# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # The options --format and --max-bytes of commands that show a {Report::Document}.
    module Formatted
      FORMATS = %i[text json markdown].freeze

      private

      def define_format(parser)
        markdown = MemprofilerPprof::Report::Markdown
        parser.on("--format FORMAT", FORMATS, "#{list(FORMATS)} (default: text)") { |format| @format = format }
        parser.on("--max-bytes N", Integer, "leave out findings that do not fit into so many bytes",
                  "of Markdown (default: #{markdown::MAX_BYTES})") do |bytes|
          raise OptionParser::InvalidArgument, "#{bytes}, must be at least #{markdown::LEAST_BYTES}" if
            bytes < markdown::LEAST_BYTES

          @max_bytes = bytes
        end
      end

      def parse(arguments)
        super
        raise Failure, "--max-bytes needs --format markdown" if @max_bytes && @format != :markdown
      end

      # @param inputs [Array<String>] names of files
      # @param sections [Array<MemprofilerPprof::Report::Section>]
      # @param notes [Array<MemprofilerPprof::Report::Note>] about all of them
      def print_document(inputs, sections, notes = [])
        report = MemprofilerPprof::Report
        inputs = inputs.map { |input| input.dup.force_encoding(Encoding::UTF_8) }
        document = report::Document.new(command: self.class.name[/\w+\z/].downcase, inputs: inputs, sections: sections,
                                        notes: notes)
        case @format
        when :json then print report::Json.new(document)
        when :markdown then print report::Markdown.new(document, **{ max_bytes: @max_bytes }.compact)
        else print report::Text.new(document, style)
        end
      end
    end
  end
end
