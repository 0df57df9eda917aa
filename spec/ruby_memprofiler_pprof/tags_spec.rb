# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Tags do
  it "have a value: one that is empty, as from a variable that is not set, leaves its tag out" do
    expect(described_class.parse("release=,pod=web-1")).to eq("pod" => "web-1")
  end

  it "are in UTF-8, whatever encoding they were given in" do
    texts = ["hé", "hé".encode(Encoding::UTF_16LE), "hé".encode(Encoding::ISO_8859_1), "hé".b]
    expect(texts.map { |text| described_class.cast({ "name" => text }) }).to all(eq({ "name" => "hé" }))
    expect(described_class.cast({ "name" => "h\xE9".b })).to eq({ "name" => "h\uFFFD" })
  end

  it "of a merged profile are those that all share" do
    comments = %w[tag.release=1 tag.region=eu pid=7 tag.release=2 tag.region=eu pid=8]
    expect(described_class.of(comments)).to eq("region" => "eu")
  end
end
