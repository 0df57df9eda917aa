# frozen_string_literal: true

# Computes with floating-point numbers, whose sum is known: a register that is not restored would show.
$stdout.sync = true
puts

def sum
  total = 0.0
  1.upto(20_000) { |number| total += (Math.sin(number) * Math.sqrt(number)) / (number + 0.5) }
  total
end

expected = sum
loop { warn "another sum" unless sum.eql?(expected) }
