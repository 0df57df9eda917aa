# frozen_string_literal: true

# The specs trust these readers, so they are tested with a profile written here byte by byte.
RSpec.describe Pprof do
  # A minimal encoder: [number, Integer or String] pairs.
  def encode(*fields)
    fields.map do |number, value|
      next varint(number << 3) + varint(value) if value.is_a?(Integer)

      varint((number << 3) | 2) + varint(value.bytesize) + value.b
    end.join
  end

  def varint(number)
    number &= (1 << 64) - 1
    bytes = []
    while number > 0x7f
      bytes << ((number & 0x7f) | 0x80)
      number >>= 7
    end
    (bytes << number).pack("C*")
  end

  def packed(*numbers)
    numbers.map { |number| varint(number) }.join
  end

  let(:strings) { ["", "retained_objects", "count", "Ä#b", "/a.rb", "class", "String", "gc_age", "gc", "note", "ruby"] }
  let(:fields) do
    [
      [1, encode([1, 1], [2, 2])],
      [2, encode([1, packed(1, 2)], [2, packed(7)], [3, encode([1, 5], [2, 6])], [3, encode([1, 7], [3, 2], [4, 8])])],
      [2, encode([1, packed(2)], [2, packed(-3)])],
      [3, encode([1, 1], [5, 10], [7, 1])],
      [4, encode([1, 1], [2, 1], [4, encode([1, 1], [2, 300])])],
      [4, encode([1, 2], [2, 1], [4, encode([1, 1], [2, 12])])],
      [5, encode([1, 1], [2, 3], [4, 4], [5, 11])],
      *strings.map { |string| [6, string] },
      [9, 1_700_000_000_000_000_000], [10, 5], [11, encode([1, 1], [2, 2])], [12, 100], [13, packed(9)], [14, 1]
    ]
  end
  let(:gzipped) { Zlib.gzip(encode(*fields)) }

  shared_examples "a decoder" do
    it "reads the frames of a sample, leaf first" do
      expect(profile.samples.first.frames.map(&:to_a))
        .to eq([["Ä#b", "/a.rb", 300, 11, ""], ["Ä#b", "/a.rb", 12, 11, ""]])
    end

    it "reads string and numeric labels with their units" do
      expect(profile.samples.first).to have_attributes(labels: { "class" => "String", "gc_age" => 2 },
                                                       label_units: { "gc_age" => "gc" })
    end

    it "reads values, negative ones too" do
      expect(profile.samples.map { |sample| sample[:retained_objects] }).to eq([7, -3])
    end

    it "reads types, times, period and comments" do
      expect(profile).to have_attributes(
        type_names: ["retained_objects"], default_sample_type: "retained_objects", comments: ["note"], period: 100,
        period_type: Pprof::ValueType.new("retained_objects", "count"), time_nanos: 1_700_000_000_000_000_000,
        duration_nanos: 5
      )
    end

    it "reads the mapping" do
      expect(profile.mapping).to have_attributes(id: 1, file: "ruby", has_functions: true, has_filenames: false)
    end

    it "sums values by class" do
      expect(profile.by_class).to eq("String" => 7, nil => -3)
    end

    it "sums the values of chosen samples" do
      expect(profile.total(:retained_objects) { |sample| sample.frames.size == 2 }).to eq(7)
    end

    it "finds samples by a frame's name" do
      expect([/#b\z/, "Ä#b", /nothing/].map { |pattern| profile.samples_with_frame(pattern).size }).to eq([2, 2, 0])
    end
  end

  describe ".decode" do
    subject(:profile) { described_class.decode(gzipped) }

    it_behaves_like "a decoder"

    it "refuses an unknown field" do
      fields << [16, 1]
      expect { profile }.to raise_error(Pprof::Wire::Malformed, /Profile has no field 16/)
    end

    it "refuses truncated bytes" do
      gzipped = Zlib.gzip(encode(*fields)[0..-2])
      expect { described_class.decode(gzipped) }.to raise_error(Pprof::Wire::Malformed, /cut off/)
    end

    it "refuses a second gzip member" do
      expect { described_class.decode(gzipped * 2) }.to raise_error(Pprof::Wire::Malformed, /after the gzip member/)
    end
  end

  describe ".decode_with_protobuf", :protobuf do
    subject(:profile) { described_class.decode_with_protobuf(gzipped) }

    it_behaves_like "a decoder"
  end

  describe Pprof::Rules do
    subject(:violations) { described_class.violations(Pprof.decode(gzipped)) }

    it "finds errors in a profile" do
      expect(violations).to eq(["a value is negative"])
    end

    it "finds ids that are out of order" do
      fields[4], fields[5] = fields.values_at(5, 4)
      expect(violations).to include("ids of location are not 1..2")
    end

    it "finds a numeric label without a unit" do
      fields[2] = [2, encode([1, packed(2)], [2, packed(3)], [3, encode([1, 7], [3, 2])])]
      expect(violations).to eq(["the numeric label gc_age has no unit"])
    end
  end

  describe Pprof::GoPprof, :go do
    it "makes Go's tool read a profile" do
      result = described_class.run(gzipped, "-top", "-nodecount=5")
      expect(result).to have_attributes(success?: true, stderr: "", stdout: /Ä#b/)
    end

    it "subtracts a base" do
      result = described_class.run(gzipped, "-top", base: gzipped)
      expect(result).to have_attributes(success?: true, stdout: /of 0 total|Showing nodes accounting for 0, 0%/)
    end
  end
end
