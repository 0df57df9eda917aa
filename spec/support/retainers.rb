# frozen_string_literal: true

require "json"
require_relative "pprof/maker"

# What a process answers when it is asked who holds what is alive: in the extension's form, for examples of what is made
# of it. The file has the paths of the answer's profile as well.
module RecordedRetainers
  JSON_FILE = File.expand_path("retainers/answer.json", __dir__)
  TYPES = [%w[retained_objects count], %w[retained_size bytes]].freeze
  SITE = "/srv/shop/app/services/product_card_cache.rb:11"

  module_function

  # @param changes [Hash{Symbol => Object}] in place of what the answer has
  # @return [String]
  def json(**changes)
    JSON.generate({ **answer.except(:paths), **changes })
  end

  # @return [Hash{Symbol => Object}]
  def answer
    JSON.parse(File.read(JSON_FILE, encoding: "UTF-8"), symbolize_names: true)
  end

  # @return [String] the profile that the extension makes of the answer's paths, apart from being gzipped
  def pprof(comments: { kind: "retainers", pid: 4711 })
    profile = Pprof::Maker.new(types: TYPES, weight: 100, time: 1_795_384_333, comments: comments)
    answer[:paths].each do |path|
      stack = path[:frames].map { |frame| frame.values_at(:name, :file, :line) }
      values = path.values_at(:objects, :bytes).map(&:round)
      profile.sample(stack, values, path[:class], labels: { site: path[:site] })
    end
    profile.to_s
  end

  # @return [MemprofilerPprof::Retainers]
  def retainers(**changes)
    require "ruby_memprofiler_pprof/retainers"
    MemprofilerPprof::Retainers.new(json(**changes), pprof)
  end

  # Lets a collector answer so, and records what it was asked.
  # @param collector [MemprofilerPprof::Collector]
  # @yield instead of an answer, if there is a block
  # @return [Array<Array>] the arguments of each question
  def answer_of(collector)
    asked = []
    answer = [json(pid: Process.pid), pprof]
    collector.define_singleton_method(:retainers_data) do |*arguments|
      asked << arguments
      block_given? ? yield : answer
    end
    collector.singleton_class.send(:private, :retainers_data)
    asked
  end
end
