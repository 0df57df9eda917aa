# frozen_string_literal: true

# What the measured code allocates.
module Workload
  # The object of the reference workload.
  class Foo
    def initialize(number)
      @number = number
    end
  end

  # How many objects a site allocates per call.
  BURST = 10

  module_function

  # Units of work: requests to {RackLoad} if the load is "requests", else {allocate_under}.
  def run(spec, count)
    return allocate_under(spec[:depth], count) unless spec[:load] == "requests"

    require_relative "rack_load"
    RackLoad.run(count)
  end

  # `count` objects that die immediately, allocated by one line under `depth` calls.
  def allocate_under(depth, count)
    return allocate_under(depth - 1, count) if depth > 1

    number = 0
    while number < count
      Foo.new(number)
      number += 1
    end
  end

  # Methods on separate lines, for {keep_under}.
  def define_sites(count)
    module_eval(Array.new(count) { |number| <<~RUBY }.join, "sites.rb", 1)
      def self.site_#{number}(kept, from, to)
        while from < to
          kept[from] = Foo.new(from)
          from += 1
        end
      end
    RUBY
  end

  # `count` objects that live, from each of the sites in turn, all under `depth` calls.
  def keep_under(depth, count, sites)
    return keep_under(depth - 1, count, sites) if depth > 1

    names = Array.new(sites) { |number| :"site_#{number}" }
    kept = Array.new(count)
    from = 0
    burst = [BURST, count / sites].min
    while from < count
      __send__(names[from / burst % sites], kept, from, from + burst)
      from += burst
    end
    kept
  end
end
