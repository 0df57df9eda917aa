# frozen_string_literal: true

require "json"

# What {Bench::RetainersSection} needs of worker.rb.
module Measurements
  # A third of the objects of a heap.
  Record = Struct.new(:fields, :name)
  private_constant :Record

  class << self
    def retainers(spec)
      kept = {}
      (spec[:live] / 3).times { |index| kept[index] = Record.new([index], "a name of forty bytes, number #{index}") }
      GC.start
      answer, held = [false, true].map { |here| JSON.parse(SUBJECT.collector.retainers(in_process: here).to_json) }
      { kept: kept.size, resident: resident_bytes, objects: answer.fetch("objects"),
        pause: answer.fetch("pause_nanoseconds"), elapsed: answer.fetch("elapsed_nanoseconds"),
        bytes: answer.fetch("memory_bytes"), held: held.fetch("held_nanoseconds"), **dump }
    end

    private

    # To a file, which is what reads it afterwards.
    def dump
      require "objspace"
      require "tempfile"
      Tempfile.create("heap") do |file|
        before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        ObjectSpace.dump_all(output: file)
        { dump: Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - before, dumped: file.size }
      end
    end
  end
end
