# frozen_string_literal: true

# Sleeps.
$stdout.sync = true
puts
loop { sleep }
