# frozen_string_literal: true

require "ruby_memprofiler_pprof/sidekiq"

# In separate processes: Sidekiq's own middleware chain and testing mode, without Redis.
RSpec.describe MemprofilerPprof::Sidekiq::Middleware, :threads do
  before { skip "Sidekiq is not installed" unless UsableGems.include?("sidekiq") }

  # Where Sidekiq 7 and Sidekiq 6 keep a server's middlewares.
  let(:chain) do
    "(Sidekiq.respond_to?(:default_configuration) ? Sidekiq.default_configuration : Sidekiq).server_middleware"
  end

  it "labels what a job allocates with its class" do
    code = <<~RUBY
      require "sidekiq/testing/inline"
      require "ruby_memprofiler_pprof/sidekiq"
      class Count
        include Sidekiq::Worker
        def perform = puts("job: \#{MemprofilerPprof.labels[:job]}")
      end
      Sidekiq::Testing.server_middleware { |chain| chain.add(MemprofilerPprof::Sidekiq::Middleware) }
      Count.perform_async
    RUBY
    expect(run_ruby(code, gems: true).stdout).to include("job: Count\n")
  end

  it "names a job of Active Job, not its wrapper" do
    labels = nil
    described_class.new.call(nil, { "class" => "Wrapper", "wrapped" => "RestockJob" }, "default") do
      labels = MemprofilerPprof.labels
    end
    expect(labels).to eq(job: "RestockJob")
  end

  it "returns what the job returns" do
    expect(described_class.new.call(nil, { "class" => "Count" }, "default") { 5 }).to eq(5)
  end

  it "runs a job without the label if there is no room for it" do
    labels = [15, 16].map do |count|
      MemprofilerPprof.with_labels(Array.new(count) { |n| ["label#{n}", n] }.to_h) do
        described_class.new.call(nil, { "class" => "Count" }, "default") { MemprofilerPprof.labels[:job] }
      end
    end
    expect(labels).to eq(["Count", nil])
  end

  it "announces a server, and nothing else" do
    announced = %w[sidekiq/cli sidekiq].map do |library|
      run_ruby(<<~RUBY, gems: true).stdout
        require "#{library}"
        require "ruby_memprofiler_pprof/sidekiq"
        MemprofilerPprof::Sidekiq::Middleware.install
        print MemprofilerPprof::Service.announced?
      RUBY
    end
    expect(announced).to eq(%w[true false])
  end

  # Sidekiq is a server if its command is loaded.
  it "is installed in servers, once" do
    code = <<~RUBY
      require "sidekiq/cli"
      require "ruby_memprofiler_pprof/sidekiq"
      2.times { MemprofilerPprof::Sidekiq::Middleware.install }
      puts #{chain}.entries.map(&:klass).count(MemprofilerPprof::Sidekiq::Middleware)
    RUBY
    expect(run_ruby(code, gems: true).stdout).to eq("1\n")
  end

  it "is not installed if the profiler is switched off" do
    code = <<~RUBY
      require "sidekiq/cli"
      ENV["RUBY_MEMPROFILER_PPROF_ENABLED"] = "0"
      require "ruby_memprofiler_pprof/sidekiq"
      MemprofilerPprof::Sidekiq::Middleware.install
      puts #{chain}.entries.map(&:klass).count(MemprofilerPprof::Sidekiq::Middleware)
    RUBY
    expect(run_ruby(code, gems: true).stdout).to eq("0\n")
  end

  it "is installed nowhere else" do
    code = <<~RUBY
      require "sidekiq"
      require "ruby_memprofiler_pprof/sidekiq"
      MemprofilerPprof::Sidekiq::Middleware.install
      puts #{chain}.exists?(MemprofilerPprof::Sidekiq::Middleware)
    RUBY
    expect(run_ruby(code, gems: true).stdout).to eq("false\n")
  end

  describe "in Rails", :rails do
    def installed?(settings = "")
      configure(settings)
      source = File.read("#{app}/config/application.rb")
      File.write("#{app}/config/application.rb", source.sub("require \"rails\"\n", "\\0require \"sidekiq/cli\"\n"))
      outcome = in_app("puts #{chain}.entries.map(&:klass)")
      raise outcome.to_s unless outcome.success?

      outcome.stdout.include?("MemprofilerPprof::Sidekiq::Middleware")
    end

    it "is installed when the profiler starts" do
      expect([installed?, installed?("config.enabled = true")]).to eq([false, true])
    end

    it "can be switched off" do
      expect(installed?("config.enabled = true; config.label_jobs = false")).to be(false)
    end
  end
end
