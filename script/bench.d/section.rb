# frozen_string_literal: true

require_relative "runner"

module Bench
  # A table of the result: what is measured for it, and its rows. Subclasses have `jobs` and `rows`.
  class Section
    attr_reader :name, :title, :header

    # @return [Array<Job>] what the rows of `jobs` are compared with
    def needed_for(_jobs)
      []
    end

    # @return [Array<Job>] those of `jobs` whose instructions are counted
    def counted(_jobs)
      []
    end
  end
end
