# frozen_string_literal: true

require "yaml"

# Only GitHub can run them: so this compares the names in them with what exists.
RSpec.describe "The workflows" do
  let(:root) { File.expand_path("..", __dir__) }
  let(:workflows) do
    Dir[File.join(root, ".github/workflows/*.yml")].to_h { |file| [File.basename(file), YAML.load_file(file)] }
  end
  let(:jobs) { workflows.values.flat_map { |workflow| workflow["jobs"].values } }
  let(:commands) { jobs.flat_map { |job| job["steps"].filter_map { |step| step["run"] } } }

  it "are those for tests and releases" do
    expect(workflows.keys).to contain_exactly("test.yml", "release.yml")
  end

  it "call existing scripts" do
    scripts = commands.join("\n").scan(%r{(?<![\w/])script/[\w./]+}).uniq
    expect(scripts).to include("script/native", "script/native.d/in_alpine", "script/package.d/install_native")
    expect(scripts.reject { |script| File.executable?(File.join(root, script)) || script == "script/layout" }).to eq([])
  end

  it "work in directories that exist" do
    directories = jobs.flat_map { |job| job["steps"].filter_map { |step| step["working-directory"] } }
    expect(directories.reject { |directory| File.directory?(File.join(root, directory)) }).to eq([])
  end

  it "run existing tasks" do
    tasks = commands.join("\n").scan(/bundle exec rake (.+)/).flat_map { |line,| line.split }.uniq
    known = run_command(RbConfig.ruby, "-S", "rake", "--silent", "--all", "--tasks", chdir: root).stdout
    expect(tasks).to include("compile", "spec")
    expect(tasks - known.scan(/^rake (\S+)/).flatten).to eq([])
  end

  it "wait for existing jobs" do
    missing = workflows.values.map do |workflow|
      workflow["jobs"].values.flat_map { |job| [*job["needs"]] } - workflow["jobs"].keys
    end
    expect(missing).to all(be_empty)
  end

  it "give no token more permissions than it needs" do
    expect(workflows.values.map { |workflow| workflow["permissions"] }).to all(eq("contents" => "read"))
    expect(jobs.filter_map { |job| job["permissions"] }).to eq([{ "id-token" => "write" }])
  end

  describe "for releases" do
    let(:release) { workflows["release.yml"] }
    let(:rubies) { release["env"]["RUBIES"].split }
    let(:library) { release["jobs"]["library"]["strategy"]["matrix"] }

    it "build a library for every Ruby that the gem supports" do
      expect(library["ruby"]).to eq(rubies)
      expect(release["jobs"]["install-macos"]["strategy"]["matrix"]["ruby"]).to eq(rubies)
    end

    it "build for all Rubies without a gap, from the oldest supported one on" do
      expect(rubies.first).to eq(Gem::Specification.load(File.join(root, "ruby_memprofiler_pprof.gemspec"))
                                                    .required_ruby_version.requirements.first.last.to_s)
      expect(rubies).to eq(%w[3.1 3.2 3.3 3.4 4.0])
    end

    it "build a gem from the libraries for every platform" do
      platforms = release["jobs"]["gem"]["strategy"]["matrix"]["platform"]
      expect(library["platform"].map { |platform| platform["name"] }).to eq(platforms)
      expect(platforms).to eq(%w[x86_64-linux-gnu aarch64-linux-gnu x86_64-linux-musl aarch64-linux-musl
                                 x86_64-darwin arm64-darwin])
    end

    it "install the gem for Linux on every Ruby, with each libc" do
      images = release["jobs"]["install-linux"]["strategy"]["matrix"]["image"].map { |image| image["name"] }
      expect(images).to eq(["debian:13"] + %w[slim alpine].flat_map do |kind|
                                             rubies.map do |ruby|
                                               "ruby:#{ruby}-#{kind}"
                                             end
                                           end)
    end

    it "publish only what was installed, and only what was tagged" do
      publish = release["jobs"]["publish"]
      expect(publish).to include("if" => "github.ref_type == 'tag'", "needs" => %w[source install-linux install-macos])
    end
  end

  it "test every Ruby that has a gem" do
    tested = workflows["test.yml"]["jobs"].values_at("test", "yjit").map { |job| job["strategy"]["matrix"]["ruby"] }
    rubies = workflows["release.yml"]["env"]["RUBIES"].split
    expect(tested).to eq([[*rubies, "head"], rubies])
  end

  it "compile with the oldest supported Rust" do
    wanted = File.read(File.join(root, "Cargo.toml"))[/^rust-version = "(.*)"/, 1]
    setup = workflows["test.yml"]["jobs"]["oldest-rust"]["steps"].find { |step| step.to_s.include?("toolchain") }
    expect(setup["with"]["rustup-toolchain"]).to eq(wanted)
  end
end
