# frozen_string_literal: true

module Torture
  module Kinds
    # Methods and classes that are evaluated, called, redefined and dropped while what they allocated lives on.
    class Code < Kind
      SOURCE = <<~RUBY
        class Passing%<number>d
          def initialize(herd) = @objects = Array.new(3) { herd.add }
          def self.make(herd) = new(herd)
          define_method(:from_block) { |herd| herd.add }
        end
      RUBY

      private

      def prepare
        @number = 0
      end

      def step
        @number += 1
        space = Module.new
        space.module_eval(format(SOURCE, number: @number), "passing#{@number}.rb", random.rand(1000))
        kind = space.const_get("Passing#{@number}")
        (@kept ||= []) << kind.make(herd)
        @kept.last.from_block(herd)
        redefine(kind)
        space.send(:remove_const, "Passing#{@number}") if random.rand < 0.5
        @kept.shift(10) if @kept.size > 20
        oddities
        nap(0.002)
      end

      def redefine(kind)
        kind.class_eval("def again(herd) = herd.add", __FILE__, __LINE__)
        kind.new(herd).again(herd)
        kind.send(:undef_method, :again)
        object = kind.new(herd)
        own = herd
        object.define_singleton_method(:single) { own.add }
        object.single
        object.instance_eval { own.add }
      end

      def oddities
        own = herd
        RubyVM::InstructionSequence.compile("proc { |herd| herd.add }").eval.call(own)
        binding.local_variable_set(:x, own.add)
        renamed = Class.new { def self.name = raise("no name") }
        (@odd ||= []) << renamed.new << Class.new(renamed) { def hash = raise("no hash") }.new
        @odd.shift(10) if @odd.size > 40
        own.method(:add).unbind.bind_call(own)
      end
    end
  end
end
