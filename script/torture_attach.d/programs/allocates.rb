# frozen_string_literal: true

# Allocates all the time, in two threads.
$stdout.sync = true
puts
Thread.new { loop { Array.new(100) { |number| "x#{number}" } } }
loop { Array.new(100) { |number| [number, { number => "y#{number}" }] } }
