# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::BatchCounts do
  def counts(*left, calls: [40, 40, 40, 40, 40, 80, 160, 320])
    described_class.new(calls, left)
  end

  let(:leak) { counts(40, 40, 40, 40, 40, 80, 160, 320) }
  let(:filling) { counts(40, 40, 40, 30, 20, 20, 10, 5) }
  let(:replacing) { counts(0, 0, 0, 0, 0, 0, 30, 320) }

  it "has a rate for each batch" do
    expect(counts(0, 10, 20, 40, 40, 80, 160, 320).rates).to eq([0, 0.25, 0.5, 1, 1, 1, 1, 1])
  end

  it "has a rate of all batches" do
    expect(counts(38, 0, 0, 0, 0, 0, 0, 0).rate).to eq(0.05)
  end

  it "is beyond what is tolerated if more was left" do
    expect([leak.beyond?(0.99), leak.beyond?(1)]).to eq([true, false])
  end

  it "is not beyond it if two batches left nothing" do
    expect([counts(0, 40, 40, 40, 40, 40, 80, 160).beyond?(0.05), counts(0, 40, 0, 40, 40, 40, 80, 160).beyond?(0.05)])
      .to eq([true, false])
  end

  it "has ended if the last batch left less than chance explains" do
    expect([counts(*[40] * 7, 0).ended?(0.05), counts(*[40] * 7, 8).ended?(0.05)]).to eq([true, false])
  end

  # 16 + 3 * sqrt(16 + 1) = 28.4
  it "has ended if the last batch is three standard errors below what is tolerated" do
    expect([29, 28].map { |calls| described_class.new([40, calls], [40, 16]).ended?(1) }).to eq([true, false])
  end

  it "has not ended if the last batch is too short to judge" do
    expect(described_class.new([4, 4, 8], [4, 4, 0]).ended?(0.05)).to be(false)
  end

  it "is fading if it gets slower and slower" do
    expect([filling, leak, replacing].map(&:fading?)).to eq([true, false, false])
  end

  it "is replaced if what the first batches left is gone" do
    expect([filling, leak, replacing].map(&:replaced?)).to eq([false, false, true])
  end

  it "recognizes a leak that occurs at random" do
    random = Random.new(1)
    explained = Array.new(200) do
      counts(*[40, 40, 40, 40, 40, 80, 160, 320].map { |calls| Array.new(calls) { random.rand }.count { _1 < 0.1 } })
    end
    expect(explained.count { |growth| growth.fading? || growth.replaced? }).to be <= 2
  end
end
