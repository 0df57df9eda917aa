# frozen_string_literal: true

require "open3"
require "rbconfig"

# The contents of sig/. Another process reads them, at first use: rbs keeps 200,000 objects, which would slow down every
# garbage collection in this one, and its parser remembers the addresses of its classes, which examples with compaction
# would move.
module Signatures
  FILES = File.expand_path("../../sig", __dir__)
  READER = File.expand_path("subprocess/signatures.rb", __dir__)

  module_function

  # @return [Array<String>] the names of the gem's modules
  def modules
    all[:modules].keys
  end

  # @return [Array<Symbol>]
  def constants(type)
    of(type)[:constants]
  end

  # @return [Hash{Symbol => Array}] the parameters of a class's own methods, without inherited ones: the numbers of
  #   positional ones, and the names of keywords
  def instance_methods(type)
    of(type)[:instance_methods]
  end

  # @return [Hash{Symbol => Array}]
  def singleton_methods(type)
    of(type)[:singleton_methods]
  end

  # @return [Array<Symbol>]
  def keywords(type, method)
    instance_methods(type).fetch(method).last
  end

  # @return [String] the type of a constant outside of all modules
  def type_of(constant)
    all[:types].fetch(constant)
  end

  def of(type)
    all[:modules].fetch(type)
  end

  def all
    @all ||= begin
      output, errors, status = Open3.capture3({ "RUBYOPT" => nil }, RbConfig.ruby, READER, FILES, binmode: true)
      raise errors unless status.success?

      Marshal.load(output) # rubocop:disable Security/MarshalLoad
    end
  end
end
