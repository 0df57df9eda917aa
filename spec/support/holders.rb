# frozen_string_literal: true

require "json"
require_relative "faulty"
require_relative "subprocess_helpers"

# Asks how the objects in the program spec/support/holders/program.rb are held.
module Holders
  PROGRAM = File.expand_path("holders/program.rb", __dir__)
  LINES = File.readlines(PROGRAM, chomp: true)
  # By what the program does first, the paths to the instances of each class.
  FOUND = {} # rubocop:disable Style/MutableConstant

  # @param kind [String] the name of a class in the program's module Kept
  # @param preparation [String] code that runs before anything is asked
  # @return [Array<String>] the path to its only instance: the names of objects, and between them how each refers to the
  #   next
  def path(kind, preparation = "")
    found = paths(preparation).fetch(kind)
    expect(found.size).to eq(1)
    found.first
  end

  # @return [Hash{String => Array<Array<String>>}] the paths to the instances of each class in Kept
  def paths(preparation = "")
    FOUND[preparation] ||= JSON.parse(printed_by(<<~RUBY).last)
      require "json"
      require #{PROGRAM.inspect}
      #{preparation}
      paths = Kept.constants.to_h { |name| [name, faults.heap_paths(Kept.const_get(name))] }
      GC.stress = false
      puts JSON.generate(paths)
    RUBY
  end

  # @param text [String] in the program
  # @return [String] where that is, as in names
  def at(text)
    "#{PROGRAM.delete_prefix("#{Dir.pwd}/")}:#{line(text)}"
  end

  # The edge to a constant that a line sets.
  def constant(name, text = "#{name} = ")
    "Constant { name: #{name.inspect}, file: Some(#{PROGRAM.inspect}), line: Some(#{line(text)}) }"
  end

  # A path that begins with a constant of Object.
  def from(name, *rest)
    ["Object", constant(name), *rest]
  end

  # The part of a path with a variable that a block captures.
  def captured(name, label, text)
    ["Unknown", "(locals of #{label} at #{at(text)})", "Local(#{name.inspect})"]
  end

  # The edge to a local variable of a frame.
  def local(name, label, text)
    "Local(#{"#{name} in #{label} at #{at(text)}".inspect})"
  end

  private

  def line(text)
    (LINES.index { |line| line.lstrip.start_with?(text) } || LINES.index { |line| line.include?(text) }) + 1
  end
end
