# frozen_string_literal: true

module Torture
  # A profile's counts per class, and its comments. The rest is skipped: the torture reads many large profiles.
  class Sums
    # Class name => objects.
    attr_reader :allocated, :retained, :comments

    # @param bytes [String] gzipped
    def initialize(bytes)
      @allocated = Hash.new(0)
      @retained = Hash.new(0)
      @strings = []
      samples = []
      comments = []
      Pprof::Wire.each_field(gunzip(bytes)) do |number, value|
        case number
        when 2 then samples << value
        when 6 then @strings << value.dup.force_encoding(Encoding::UTF_8)
        when 13 then comments.concat(Pprof::PlainDecoder.values(:int64, value))
        end
      end
      @comments = comments.map { |index| @strings.fetch(index) }
      classes = Hash.new { |known, label| known[label] = class_label(label) }
      samples.each { |sample| add(sample, classes) }
    end

    private

    # Ruby's zlib may give up when a signal arrives.
    def gunzip(bytes)
      tries = 0
      begin
        Child::FORKING.synchronize { Pprof::PlainDecoder.gunzip(bytes) }
      rescue Zlib::BufError
        (tries += 1) < 5 ? retry : raise
      end
    end

    def add(sample, classes)
      values = name = nil
      Pprof::Wire.each_field(sample) do |number, value|
        values = Pprof::Wire.packed(value) if number == 2
        name ||= classes[value] if number == 3
      end
      return unless name

      @allocated[name] += values[0]
      @retained[name] += values[2]
    end

    # The label's value, if it is the class.
    def class_label(label)
      fields = {}
      Pprof::Wire.each_field(label) { |number, value| fields[number] = value }
      @strings.fetch(fields.fetch(2)) if @strings.fetch(fields.fetch(1)) == "class"
    end
  end
end
