# frozen_string_literal: true

require "json"

# Prints the tags of each example, one JSON array per line: its file, its tags. For `rspec --dry-run`.
class PlanFormatter
  RSpec::Core::Formatters.register self, :example_started

  def initialize(output)
    @output = output
  end

  def example_started(notification)
    metadata = notification.example.metadata
    tags = metadata.select { |name, value| value == true && name.is_a?(Symbol) }.keys
    # A shared group counts where it is included.
    @output.puts(JSON.generate([metadata[:rerun_file_path], tags]))
  end
end
