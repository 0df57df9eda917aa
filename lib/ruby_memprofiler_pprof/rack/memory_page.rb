# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/response"
require "ruby_memprofiler_pprof/report"

module MemprofilerPprof
  module Rack
    # What {Endpoint} answers to `memory`: what the command `memory` prints, of one process or of several side by side;
    # or the same as data.
    # @api private
    class MemoryPage
      # @param answers [Answers] as JSON
      # @param query [MemoryQuery]
      # @param path [String] of the endpoint
      def initialize(answers, query, path)
        @answers = answers
        @query = query
        @path = path
      end

      # @return [Array] for Rack
      def response
        case @query.format
        when :html then Response.html(html)
        when :text then Response.text("#{text}\n")
        else Response.json(json)
        end
      end

      private

      # An Array if all processes were asked, however many there are.
      def json
        texts = @answers.texts
        @query.pid == :all ? "[#{texts.join(",")}]" : texts.first
      end

      def text
        memories = MemprofilerPprof::Memory.parse(json)
        (memories.size == 1 ? Report::Memory.new(memories.first) : Report::Workers.new(memories)).to_s
      end

      def html
        Page.html("#{@answers.subject}: where the memory is", <<~HTML, home: @path)
          <pre>#{Response.escape(text)}</pre>
          <p>Ask with <code>quick=1</code> for what can be told without a walk over the heap, or for
          <a href="?#{Response.escape(@query.with(format: "json"))}">JSON</a>.</p>
        HTML
      end
    end
  end
end
