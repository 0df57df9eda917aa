# frozen_string_literal: true

# Has no RubyGems.
$stdout.sync = true
warn "RubyGems is there" if defined?(Gem)
puts
loop do
  Array.new(100) { +"x" }
  sleep 0.001
end
