# frozen_string_literal: true

%w[cli cli/top cli/top/prompt].each { |name| require "ruby_memprofiler_pprof/#{name}" }

RSpec.describe MemprofilerPprof::CLI::Top::Prompt do
  # End, Delete, F1, Ctrl-A.
  ["\e[F", "\e[3~", "\eOP", "\u0001"].each do |key|
    it "ignores the key #{key.inspect}" do
      prompt = described_class.new
      prompt.open
      ["a", key, "é"].each { |each| prompt.press(each) }
      expect(prompt.text).to eq("aé")
    end
  end
end
