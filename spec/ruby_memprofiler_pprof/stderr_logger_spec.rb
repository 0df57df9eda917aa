# frozen_string_literal: true

RSpec.describe MemprofilerPprof::StderrLogger do
  it "writes errors, with the time and the process" do
    expect { described_class.error("oh") }
      .to output(/\AERROR ruby_memprofiler_pprof \[\d{4}-\d\d-\d\dT[\d:]{8}[-+]\d\d:\d\d ##{Process.pid}\] oh\n\z/)
      .to_stderr
  end

  it "writes warnings" do
    expect { described_class.warn("oh") }.to output(/\AWARN .* oh\n\z/).to_stderr
  end

  it "writes nothing less serious" do
    expect do
      described_class.info("oh")
      described_class.debug("oh")
    end.not_to output.to_stderr
  end

  it "ignores a closed stderr" do
    outcome = run_ruby('$stderr.close; MemprofilerPprof::StderrLogger.error("oh"); print "on"')
    expect(outcome).to have_attributes(success?: true, stdout: "on")
  end

  it "ignores a stderr that nobody reads" do
    code = 'reader, writer = IO.pipe; $stderr = writer; reader.close
            MemprofilerPprof::StderrLogger.error("oh"); print "on"'
    expect(run_ruby(code)).to have_attributes(success?: true, stdout: "on")
  end
end
