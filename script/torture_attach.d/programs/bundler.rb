# frozen_string_literal: true

# Runs under Bundler, whose Gemfile names no gem.
require "tmpdir"

Dir.mktmpdir do |directory|
  ENV["BUNDLE_GEMFILE"] = File.join(directory, "Gemfile")
  File.write(ENV.fetch("BUNDLE_GEMFILE"), "")
  require "bundler/setup"
end

$stdout.sync = true
puts
loop do
  Array.new(100) { +"x" }
  sleep 0.001
end
