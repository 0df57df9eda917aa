# frozen_string_literal: true

# A question about references while deaths go unnoticed: what may have died is never read.
RSpec.describe "retainers", :faults do
  # What the code prints about the question, where a collection meets a fault between the flush that names the samples
  # and the reading of the heap.
  def printed_after(fault, code)
    printed_by(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      kept = Array.new(100) { Object.new }
      faults.inject("flush: commit") do
        faults.inject("GC_END_MARK", #{fault.inspect})
        GC.start
        faults.clear
      end
      #{code}
    RUBY
  end

  describe "after a collection that no hook saw" do
    def sites(question)
      printed_after(:deny, <<~RUBY)
        puts collector.retainers(class_name: "Object"#{question}).sites.map(&:name)
        puts collector.stats[:missed_collections]
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

  it "in the process itself fail after a panic in a hook" do
    expect(printed_after(:panic, <<~RUBY)).to eq(["MemprofilerPprof::InternalError"])
      begin
        collector.retainers(in_process: true)
      rescue MemprofilerPprof::Error => e
        puts e.class
      end
    RUBY
  end
end
