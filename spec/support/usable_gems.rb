# frozen_string_literal: true

# Which gems are usable in examples.
module UsableGems
  # Debian has some gems for all its Rubies, but their dependencies for only one of them.
  # @return [Boolean] whether the gem and all that it depends on are installed for this Ruby
  def self.include?(name, requirement = ">= 0")
    @usable ||= {}
    @usable.fetch([name, requirement]) do |key|
      needed = Gem::Specification.find_by_name(name, requirement).runtime_dependencies
      @usable[key] = needed.all? { |dependency| include?(dependency.name, dependency.requirement) }
    rescue Gem::MissingSpecError
      @usable[key] = false
    end
  end
end
