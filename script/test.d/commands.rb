# frozen_string_literal: true

require_relative "job"

module TestRun
  # What is run beside the specs. The seconds were measured on two cores, and only determine the order.
  COMMANDS = [
    # First, since others wait for it.
    Job.new("cargo test", %w[cargo test --locked --workspace], expected: 1000),
    Job.new("cargo fmt", %w[cargo fmt --check], expected: 5),
    # These use the same build folder, so one would wait for the other. For another RUBY cargo would build anew.
    Job.new("compile:faults", %w[rake compile:faults], expected: 900, needs: ["cargo test"]),
    Job.new("cargo clippy", ["env", "RUBY=#{RbConfig.ruby}",
                             "cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
            expected: 30, needs: ["compile:faults"]),
    Job.new("sanitize", %w[script/sanitize], expected: 180, needs: ["cargo clippy"]),
    Job.new("rubocop", %w[rubocop], expected: 20),
    Job.new("layout", %w[script/layout/check], expected: 1),
    Job.new("torture", [RbConfig.ruby, "script/torture", "--seconds", "60"], expected: 70),
    Job.new("torture_attach", [RbConfig.ruby, "script/torture_attach", "--cycles", "10", "--kills", "40"],
            expected: 60),
    Job.new("fuzz", %w[script/fuzz --seed 1], expected: 240),
    Job.new("demo", %w[script/demo], expected: 30, urgent: true)
  ].freeze

  # The same tests on other Rubies, in roots that are created first.
  MATRIX = %w[3.3 3.4].flat_map do |ruby|
    [Job.new("root #{ruby}", ["script/matrix", "shell", ruby, "true"], expected: 1500, light: true),
     Job.new("matrix #{ruby}", ["script/matrix", ruby], expected: 1200, needs: ["root #{ruby}"], tail: 2)]
  end.freeze
end
