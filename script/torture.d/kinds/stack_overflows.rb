# frozen_string_literal: true

module Torture
  module Kinds
    # SystemStackError from methods, blocks and C functions that allocate on their way down.
    class StackOverflows < Kind
      private

      def prepare
        @wild = wild_herd
      end

      def step
        case random.rand(3)
        when 0 then dive
        when 1 then Thread.new { dive }.join
        else Child.in_fibers { Fiber.new { dive }.resume }
        end
        nap(0.3)
      end

      def dive
        random.rand < 0.5 ? deeper : through_c
      rescue SystemStackError
        @wild.add
      end

      def deeper
        @wild.add(:Plain)
        deeper
      end

      def through_c
        [1].map { @wild.add(:Plain) && through_c }
      end
    end
  end
end
