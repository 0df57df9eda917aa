# frozen_string_literal: true

# A question about references while collections go unnoticed: what may have died is never read.
RSpec.describe "retainers after a collection that no hook saw", :faults do
  # The sites, where that collection comes between the flush that names the samples and the reading of the heap.
  def sites(question)
    printed_by(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      kept = Array.new(100) { Object.new }
      faults.inject("flush: commit") do
        faults.inject("GC_END_MARK", :deny)
        GC.start
        faults.clear
      end
      puts collector.retainers(class_name: "Object"#{question}).sites.map(&:name), collector.stats[:missed_collections]
    RUBY
  end

  it "drop all samples in a copy of the process" do
    skip "only Linux can copy a process" unless RUBY_PLATFORM.include?("linux")
    expect(sites("")).to match([/\A[1-9]/])
  end

  it "drop all samples in the process itself" do
    expect(sites(", in_process: true")).to match([/\A[1-9]/])
  end
end
