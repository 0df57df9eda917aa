# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

# The parts of reports. cli/reports_spec.rb tests what people see of them.
RSpec.describe MemprofilerPprof::Report do
  describe "Units" do
    let(:units) { described_class.const_get(:Units) }

    it "writes bytes with three digits" do
      expect([0, 999, 1023, 1024, 11_776, 1_048_570, 5_000_000_000].map { |bytes| units.format(bytes, "bytes") })
        .to eq(["0 B", "999 B", "1023 B", "1.00 KiB", "11.5 KiB", "1.00 MiB", "4.66 GiB"])
    end

    it "writes three digits where rounding adds one" do
      expect([9.996, 99.96].map { |number| units.format(number * 1024, "bytes") }).to eq(["10.0 KiB", "100 KiB"])
    end

    it "writes no sign before what rounds to nothing" do
      expect([-0.3, -0.6].map { |bytes| units.format(bytes, "bytes") }).to eq(["0 B", "-1 B"])
    end

    it "writes small counts in full" do
      expect([7, 1234, 999_999, 1_234_567, 2e9].map { |count| units.format(count, "count") })
        .to eq(["7", "1,234", "999,999", "1.23 M", "2.00 G"])
    end

    it "writes signs" do
      expect([5, -5].map { |count| units.format(count, "count", signed: true) }).to eq(%w[+5 -5])
    end

    it "never shows complete certainty" do
      expect([0.0, 0.5, 0.9999].map { |value| units.probability(value) }).to eq(["<0.1%", "50%", ">99.9%"])
    end
  end

  describe "Statistics" do
    let(:statistics) { described_class.const_get(:Statistics) }

    # The reference values are from integrals of the densities, or exact.
    it "computes the normal distribution" do
      expect(statistics.normal_tail(1.96)).to be_within(1e-9).of(0.0249978951)
    end

    it "computes Student's distribution" do
      expect([[2.0, 5], [-1.0, 5], [6.0, 30]].map { |value, degrees| statistics.student_tail(value, degrees) })
        .to match([be_within(1e-8).of(0.05096974), be_within(1e-8).of(0.81839127), be_within(1e-10).of(6.97138e-7)])
      expect(statistics.student_quantile(10)).to be_within(1e-6).of(2.228139)
    end

    it "computes the binomial distribution" do
      expect([[8, 10], [10, 10], [0, 10], [600, 1000]].map { |heads, coins| statistics.binomial_tail(heads, coins) })
        .to match([be_within(1e-12).of(56 / 1024.0), 1 / 1024.0, 1.0, be_within(1e-14).of(1.364232e-10)])
    end

    it "corrects for multiple tests" do
      expect(statistics.holm([0.01, 0.04, 0.03, 0.005]))
        .to match([be_within(1e-12).of(0.03), be_within(1e-12).of(0.06), be_within(1e-12).of(0.06),
                   be_within(1e-12).of(0.02)])
    end
  end

  describe "PathShortener" do
    def shorten(*files)
      paths = described_class.const_get(:PathShortener).new(files)
      files.map { |file| paths.shorten(file) }
    end

    it "shows files of gems relative to the gem" do
      expect(shorten("/x/gems/rack-2.2.4/lib/rack.rb", "/x/bundler/gems/mine-0123abc/a.rb",
                     "/usr/lib/ruby/3.1.0/set.rb", "/usr/lib/ruby/vendor_ruby/rack/x.rb"))
        .to eq(["rack-2.2.4/lib/rack.rb", "mine-0123abc/a.rb", "set.rb", "rack/x.rb"])
    end

    it "shows files of the standard library of other distributions relative to it" do
      expect(shorten("/usr/lib/x86_64-linux-gnu/ruby/3.1.0/a.rb", "/usr/local/lib/site_ruby/b.rb",
                     "/usr/share/ruby/c.rb", "/usr/share/rubygems/d.rb", "/usr/lib64/ruby/e.rb",
                     "/opt/lib64/ruby/3.4.0/f.rb", "/opt/lib/ruby/4.1.0+0/g.rb"))
        .to eq(%w[a.rb b.rb c.rb d.rb e.rb f.rb g.rb])
    end

    it "takes no program for the standard library" do
      expect(shorten("/srv/ruby/3.1.0/a.rb", "/srv/ruby/3.1.0/b.rb", "/srv/ruby/share/ruby/c.rb"))
        .to eq(%w[3.1.0/a.rb 3.1.0/b.rb share/ruby/c.rb])
    end

    it "shortens what is within the name of a file that Ruby loads itself" do
      expect(shorten("<internal:/usr/lib/ruby/vendor_ruby/rubygems/a.rb>", "<internal:gc>"))
        .to eq(%w[<internal:rubygems/a.rb> <internal:gc>])
    end

    it "leaves out the common directory of the program's files" do
      expect(shorten("/srv/app/7/lib/a.rb", "/srv/app/7/b.rb")).to eq(%w[lib/a.rb b.rb])
    end

    it "leaves out the current directory" do
      expect(shorten("#{Dir.pwd}/a.rb", "/srv/b.rb")).to eq(%w[a.rb /srv/b.rb])
    end

    it "leaves out a current directory that the locale does not know, beside names in UTF-8" do
      allow(Dir).to receive(:pwd).and_return("/srv/Ä".b)
      expect(shorten("/srv/Ä/ö.rb", "/srv/é.rb")).to eq(%w[ö.rb /srv/é.rb])
    end

    it "leaves out a current directory that is not UTF-8, as profiles have it" do
      allow(Dir).to receive(:pwd).and_return("/srv/\xc4")
      expect(shorten("/srv/\uFFFD/ö.rb", "/srv/é.rb")).to eq(%w[ö.rb /srv/é.rb])
    end

    it "leaves out the common directory, too, where the current one is gone" do
      allow(Dir).to receive(:pwd).and_raise(Errno::ENOENT)
      expect(shorten("/srv/app/7/lib/a.rb", "/srv/app/7/b.rb")).to eq(%w[lib/a.rb b.rb])
    end
  end

  describe "DisplayWidth" do
    { "ascii" => 5, "王" => 2, "a 王" => 4, "ﾊﾟ" => 2, "é" => 1, "e\u0301" => 1, "한" => 2,
      "\u1112\u1161\u11ab" => 2, "（）" => 4, "👍🏽" => 2, "👩‍👩‍👧" => 2, "❤️" => 2, "❤" => 1,
      "🇯🇵" => 2, "\u200b" => 0 }.each do |text, columns|
      it "is #{columns} for #{text.dump}" do
        expect(described_class.const_get(:DisplayWidth).of(text)).to eq(columns)
      end
    end
  end

  describe "Table" do
    let(:table) do
      described_class.const_get(:Table).new([["N", :right, nil], ["LESS", :right, 1], ["LEAST", :right, 2],
                                             ["SITE", :left, nil]])
                     .add(["1", "2", "3", ["/a/long/path/to/some/file.rb:12  Some::Where#deep", "file.rb:12"]])
    end

    def lines(width, color: false)
      table.lines(described_class::Style.new(width, color))
    end

    it "shows everything that fits" do
      expect(lines(80))
        .to eq(["N  LESS  LEAST  SITE", "1     2      3  /a/long/path/to/some/file.rb:12  Some::Where#deep"])
    end

    it "shortens the last column first" do
      expect(lines(30)).to eq(["N  LESS  LEAST  SITE", "1     2      3  file.rb:12"])
    end

    it "drops the column of the highest rank first" do
      expect(lines(22)).to eq(["N  LESS  SITE", "1     2  file.rb:12"])
    end

    it "cuts from the middle if nothing else helps" do
      expect(lines(12)).to eq(["N  SITE", "1  fi...b:12"])
    end

    it "aligns columns by what they take on a terminal" do
      table = described_class.const_get(:Table).new([["N", :left, nil], ["SITE", :left, nil]])
      %W[王王 e\u0301 abc].each { |name| table.add([name, "x"]) }
      expect(table.lines(described_class::PLAIN)).to eq(["N     SITE", "王王  x", "e\u0301     x", "abc   x"])
    end

    it "cuts no character in two, and leaves room for wide ones" do
      site = ["/王", *["国"] * 4, "e\u0301.rb"].join
      line = described_class.const_get(:Table).new([["SITE", :left, nil]]).add([site])
                            .lines(described_class::Style.new(12, false)).last
      expect(line).to eq("/王...国e\u0301.rb")
    end

    it "colours whole lines" do
      expect(lines(80, color: true).first).to eq("\e[1mN  LESS  LEAST  SITE\e[0m")
    end
  end
end
