# frozen_string_literal: true

# Stand-ins for gems that are not installed: files in spec/support/stand_ins/, which define as much of a gem's interface
# as examples need.
module StandIns
  # @return [String] a file to require
  def self.path(gem)
    File.expand_path("stand_ins/#{gem}.rb", __dir__)
  end

  # Defines such a module for this example: a fresh one, unaffected by other examples.
  # @param name [String] of the module
  def stand_in(name)
    scope = Module.new
    load StandIns.path(name.downcase), scope
    stub_const(name, scope.const_get(name))
  end
end
