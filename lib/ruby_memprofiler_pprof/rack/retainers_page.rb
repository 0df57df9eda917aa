# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # What {Endpoint} answers to `retainers`: what the command `why` prints, of each process by itself; or the same as
    # data.
    # @api private
    class RetainersPage
      # @param answers [Answers] in the form that the query asks for
      # @param query [RetainersQuery]
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
        when :text then Response.text(text)
        when :json then Response.json(json(@answers.texts))
        when :pprof then Response.profile("retainers", @answers.bytes)
        else Response.profile("retainers", both)
        end
      end

      private

      def text
        "#{@answers.texts.join("\n\n\n")}\n"
      end

      # An Array if all processes were asked, however many there are.
      def json(texts)
        @query.pid == :all ? "[#{texts.map(&:b).join(",")}]" : texts.first
      end

      def both
        pairs = @answers.bodies.map { |body| OnDemand.split(body) }
        return @answers.bodies.first unless @query.pid == :all

        profile = Profile.merge(pairs.lazy.map { |_, bytes| Profile.load(bytes) })
        OnDemand.join(json(pairs.map(&:first)), profile.to_pprof)
      end

      def html
        Page.html("#{@answers.subject}: who holds what is alive", <<~HTML, home: @path)
          <pre>#{Response.escape(text)}</pre>
          <p>Ask with <code>site=FILE:LINE</code>, <code>class=NAME</code> and <code>limit=N</code>, or for
          <a href="?#{Response.escape(@query.with(format: "json"))}">JSON</a> or
          <a href="?#{Response.escape(@query.with(format: "pprof"))}">a profile</a> of the references.</p>
        HTML
      end
    end
  end
end
