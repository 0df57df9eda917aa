# frozen_string_literal: true

# A Ruby that lacks what the profiler would like to use: the profiler manages without it, and says what is missing.
RSpec.describe "a collector on a Ruby", :faults do
  # Stats and a profile's comments, after keeping 1000 objects and dropping 1000.
  def outcome_without(*denied)
    lines = printed_by(<<~RUBY)
      #{denied.inspect}.each { |what| faults.inject(what, :deny) }
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0)
      kept = []
      def keep(kept) = 1000.times { kept << Object.new }
      collector.start
      keep(kept)
      1000.times { Object.new }
      GC.start
      profile = MemprofilerPprof::Profile.load(collector.stop.flush.pprof_data)
      puts collector.stats.values_at(:bt_method, :liveness), collector.stats[:walker_failure].inspect
      puts profile.total(:retained_objects).value.between?(1000, 1100)
      puts profile.comments
    RUBY
    { bt_method: lines[0], liveness: lines[1], walker_failure: lines[2], exact: lines[3], comments: lines.drop(4) }
  end

  it "that lacks nothing walks the frames and reads mark bits" do
    expect(outcome_without).to include(bt_method: "cfp", liveness: "mark_bits", walker_failure: "nil", exact: "true")
  end

  it "of an unknown minor uses rb_profile_frames" do
    expect(outcome_without("layout"))
      .to include(bt_method: "profile_frames", walker_failure: /Ruby \d\.\d is unknown/, exact: "true",
                  comments: include("bt_method=profile_frames"))
  end

  it "whose frames the walker misreads uses rb_profile_frames" do
    expect(outcome_without("walker"))
      .to include(bt_method: "profile_frames", walker_failure: /the frames differ/, exact: "true")
  end

  it "without functions that return mark bits uses FREEOBJ" do
    symbols = %w[rb_objspace_marked_object_p rb_obj_gc_flags rb_gc_object_metadata]
    expect(outcome_without(*symbols)).to include(liveness: "freeobj", exact: "true",
                                                 comments: include("liveness=freeobj"))
  end

  it "with another garbage collector uses FREEOBJ" do
    expect(outcome_without("default GC")).to include(liveness: "freeobj", exact: "true")
  end

  it "without the END_MARK event drops what may have died, and says so" do
    outcome = outcome_without("default GC", "GC_END_MARK")
    expect(outcome).to include(exact: "false", comments: include(/\Amissed_collections=\d+: earlier live samples/))
  end

  it "whose clock says 1969 gives a profile the time 0 and a correct duration" do
    lines = printed_by(<<~RUBY)
      faults.inject("clock", :deny)
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      collector = new_collector(sample_rate: 1.0).start
      sleep 0.05
      profile = MemprofilerPprof::Profile.load(collector.flush.pprof_data)
      puts profile.time.to_i, profile.duration, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
    RUBY
    time, duration, taken = lines.map(&:to_f)
    expect([time, duration]).to match([0.0, be_between(0.05, taken)])
  end
end
