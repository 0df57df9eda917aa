# frozen_string_literal: true

require "objspace"

# How sure they are said to be, beside what the sizes of all objects lead to.
RSpec.describe MemprofilerPprof::Profile::Estimate, "of bytes", :liveness do
  # One string in ten is large.
  def text(number)
    "x" * ((number % 10).zero? ? 5000 : 50)
  end

  # The standard error of the bytes of these strings, of which each was sampled with probability 1/10.
  def truth(texts)
    Math.sqrt(9 * texts.sum { |text| ObjectSpace.memsize_of(text)**2 })
  end

  # What is stated for those that `text` has made in a block.
  def stated(type, &)
    profile = new_collector(sample_rate: 0.1, seed: 1).profile(&).profile
    line = method(:text).source_location.last + 1
    Math.sqrt(profile.top(by: :line, type: type, limit: 100).find { |site| site.line == line }.flat.variance)
  end

  # Based on 100 large strings, the variance is some 10 % off, and its root 5 %.
  it "account for sizes that differ within a line" do
    texts = nil
    found = stated("retained_size") { texts = Array.new(10_000) { |number| text(number) } }
    expect(found).to be_within(truth(texts) / 3).of(truth(texts))
  end

  it "account for the sizes of objects that have died" do
    texts = Array.new(10) { |number| text(number) } * 1000
    expect(stated("allocations_size") { 10_000.times { |number| text(number) } })
      .to be_within(truth(texts) / 3).of(truth(texts))
  end
end
