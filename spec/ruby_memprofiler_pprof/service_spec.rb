# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Service do
  # A process cannot take it back, so it is not this one that announces.
  def announced_by(code)
    run_ruby("#{code}\nprint MemprofilerPprof::Service.announced?").stdout
  end

  it "is not announced by starting a collector or the profiler" do
    expect(announced_by("MemprofilerPprof.start; MemprofilerPprof::Collector.new.start")).to eq("false")
  end

  it "can be announced" do
    expect(announced_by("MemprofilerPprof::Service.announce")).to eq("true")
  end

  it "includes forked children" do
    in_child = "(child = fork) && Process.wait(child) && exit!"
    expect(announced_by("MemprofilerPprof::Service.announce; #{in_child}")).to eq("true")
  end

  it "is recognised when the profiler starts" do
    expect(announced_by("$PROGRAM_NAME = 'unicorn master'; MemprofilerPprof.start")).to eq("true")
  end

  describe ".detect" do
    before { allow(described_class).to receive(:announce) }

    [
      ["/usr/bin/puma", "-w", "2"], ["unicorn master -D"], ["unicorn_rails worker[0] -c unicorn.rb"],
      ["puma: cluster worker 0: 17 [shop]"], ["Passenger AppPreloader: /srv/shop"], ["sidekiq"], %w[rackup -p 80],
      %w[bin/rails server], %w[rails s -p 80], %w[bundle exec puma], %w[/usr/bin/bundle exec bin/rails server],
      %w[bundle exec sidekiq -q mail]
    ].each do |program, *arguments|
      it "recognises #{[program, *arguments].join(" ")}" do
        described_class.detect(program, arguments)
        expect(described_class).to have_received(:announce)
      end
    end

    it "recognises a path that the locale does not know" do
      path = "/srv/Ä/bin/puma".dup.force_encoding(Encoding::US_ASCII)
      [[path, []], ["bundle", ["exec", path]]].each { |command| described_class.detect(*command) }
      expect(described_class).to have_received(:announce).twice
    end

    it "takes arguments that the program has changed" do
      expect { described_class.detect("bundle", ["exec", 7]) }.not_to raise_error
    end

    [
      ["-e"], [""], ["script/pumas"], %w[ruby puma], %w[rake puma], %w[bin/rails console], %w[bin/rails],
      %w[bundle install], %w[bundle show puma], %w[bundle exec], %w[bundle exec rake sidekiq], %w[bundle]
    ].each do |program, *arguments|
      it "does not recognise #{[program, *arguments].join(" ").inspect}" do
        described_class.detect(program, arguments)
        expect(described_class).not_to have_received(:announce)
      end
    end
  end
end
