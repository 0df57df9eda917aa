# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"
%w[answers leaks_page page_query].each { |name| require "ruby_memprofiler_pprof/rack/#{name}" }

RSpec.describe "What keeps growing in several processes, as a page" do
  # The second as bytes, as a socket gives them.
  let(:bodies) { { 7 => "own ü", 8 => "other ü".b } }

  def body(query)
    rack = MemprofilerPprof::Rack
    answers = rack.const_get(:Answers).new(bodies, {})
    query = rack.const_get(:PageQuery).new("leaks", query, 60)
    rack.const_get(:LeaksPage).new(answers, query, "/pprof").response.last.join
  end

  it "shows each by itself" do
    expect(body("pid=all")).to include("<pre>own ü\n\nother ü\n</pre>")
  end

  it "does so as text" do
    expect(body("pid=all&debug=1")).to eq("own ü\n\nother ü\n")
  end
end
