# frozen_string_literal: true

require "tmpdir"

# The reported place of the innermost frame, the one that allocates.
RSpec.describe MemprofilerPprof::Collector, "lines", :liveness, :moving, :jit, :threads do
  yjit = RubyVM.const_defined?(:YJIT) && RubyVM::YJIT.enabled?
  runs = yjit ? 100 : 1

  # Definitions that the cases below use.
  setting = <<~RUBY
    ONE = 1; TWO = 2; LIST = [1, 2]; HASH = { a: 1 }; TEXT = +"abc"
    class Writer; attr_writer :a; end
    FROZEN = Writer.new.freeze
    STRUCT = Struct.new(:a).new(1).freeze
    def self.take(_, _ = 1) = nil
    def self.rest(*list) = list.size
    def self.keywords(**options) = options.size
    def self.each_one = yield
  RUBY

  # Class of the objects => code that allocates them, on the lines marked with a `#`, in its own method. The method ends
  # with it, so the next instruction is on another line: that of the method's `end`.
  cases = {
    "an array literal" => ["Array", "[ #\n  ONE,\n  TWO\n]"],
    "an array literal of constants" => ["Array", "[ #\n  1,\n  2\n]"],
    "an array literal in another" => ["Array", "[ #\n  ONE,\n  [ONE, TWO] #\n]"],
    "an array literal as an argument" => ["Array", "take(\n  [ONE, TWO], #\n  ONE\n)"],
    "a hash literal" => ["Hash", "{ #\n  a: ONE,\n  b: TWO\n}"],
    "a hash literal of constants" => ["Hash", "{ #\n  a: 1,\n  b: 2\n}"],
    "a hash literal in another" => ["Hash", "{ #\n  a: ONE,\n  b: { #\n    c: TWO\n  }\n}"],
    "a string literal" => ["String", "\"abc\" #"],
    "string literals as arguments" => ["String", "take(\n  \"abc\", #\n  \"def\" #\n)"],
    "string literals in a hash" => ["String", "{\n  a: \"abc\", #\n  b: \"def\" #\n}"],
    "a string literal in a block" => ["String", "each_one do\n  \"abc\" #\nend"],
    "a string literal in a condition" => ["String", "if ONE\n  \"abc\" #\nelse\n  2\nend"],
    "a string literal that is returned" => ["String", "return \"abc\" if ONE #"],
    "a string literal as an operand" => ["String", "LIST <<\n  \"abc\" #"],
    "a here document" => ["String", "take(<<~TEXT, #\n  abc\nTEXT\n  1)"],
    "interpolation" => ["String", "\"a\#{TEXT}b\" #"],
    "interpolation in a here document" => ["String", "take(<<~TEXT, #\n  a\#{TEXT}\n  b\nTEXT\n  1)"],
    "interpolation in a symbol" => ["String", ":\"a\#{TEXT}\" #"],
    "a range" => ["Range", "(ONE.. #\n  TWO\n)"],
    "a regexp with interpolation" => ["Regexp", "/a\#{TEXT}/ #"],
    "a match" => ["MatchData", "TEXT =~ /a/ #"],
    "a splat" => ["Array", "x = *LIST #"],
    "a splat in an array literal" => ["Array", "[*LIST, ONE] #"],
    "a rest parameter" => ["Array", "rest( #\n  1,\n  2\n)"],
    "keywords" => ["Hash", "keywords(a: 1, b: 2) #"],
    "keywords with a splat" => ["Hash", "keywords(**HASH, b: 2) #"],
    "the rest of a multiple assignment" => ["Array", "a, *b = LIST #"],
    "String#+" => ["String", "TEXT + #\n  TEXT"],
    "Array#+" => ["Array", "LIST + LIST #"],
    "a call in a chain" => ["Array", "LIST\n  .itself\n  .+(LIST) #"],
    # Neither has a frame.
    "an attr_writer" => ["FrozenError", "FROZEN.a = 1 #"],
    "an accessor of a Struct" => ["FrozenError", "STRUCT.a = 1 #"]
  }

  # A module of code with a file of its own, called name.
  def program(code, line: 1)
    Module.new { module_eval(code, "case.rb", line) }
  end

  # What allocates without a frame in the interpreter, and may have one when compiled code calls it.
  operator = /\A(Array|String)#\W+\z/

  # How many objects of a class were allocated by the code itself, not by a C function that it calls, per line.
  define_method(:allocations) do |profile, class_name|
    samples = profile.samples.select do |sample|
      leaf = sample.frames.first
      sample.labels["class"] == class_name && leaf.file == "case.rb" && leaf.name.match?(/run\z|#{operator}/)
    end
    samples.each_with_object(Hash.new(0)) { |sample, counts| counts[sample.frames.first.line] += sample[:allocations] }
  end

  cases.each do |description, (class_name, code)|
    # Compiled at the first call; docs/rubies.md says what differs.
    inferred = yjit && RUBY_VERSION < "3.3" && ENV["RUBYOPT"].to_s.include?("call-threshold=1") &&
               description == "an array literal in another"

    it "are those of #{description}", skip: inferred && "this Ruby does not distinguish them" do
      program = program("def self.run\n#{code}\nend", line: 0)
      program.module_eval(setting, "setting.rb")
      profile = profile_of do
        runs.times do
          program.run
        rescue FrozenError
          nil
        end
      end
      marked = code.lines.each.with_index(1).filter_map { |line, number| number if line.chomp.end_with?("#") }
      counts = allocations(profile, class_name)
      expect(counts.keys).to match_array(marked)
      # One object per run on each of these lines: none may count for another line.
      expect(counts.values.uniq.size).to eq(1)
    end
  end

  # For code that allocates and asks Ruby for its backtrace on the same line.
  context "with Ruby's own backtrace from the very same line" do
    around do |example|
      Dir.mktmpdir { |directory| Dir.chdir(File.realpath(directory), &example) }
    end

    before do
      stub_const("Marked", Class.new { singleton_class.attr_accessor :locations })
    end

    # An expression on one line.
    let(:mark) { "Marked.allocate && Marked.locations = caller_locations(0)" }

    # The frames of the only stack that allocated a Marked in the block, without Class#allocate's.
    def frames(&)
      samples = profile_of(&).samples.select { |sample| sample.labels["class"] == "Marked" }
      expect(samples.size).to eq(1)
      samples.first.frames.drop(1)
    end

    # File and line of each frame. Code that is not Ruby, or the VM's own Ruby code, is at its caller's place.
    def expected_places
      Marked.locations.each_index.map do |index|
        own = Marked.locations.drop(index).find { |location| !location.path.start_with?("<internal:") }
        [own.absolute_path || own.path, own.lineno]
      end
    end

    def places(frames)
      frames.map { |frame| [frame.file, frame.line] }
    end

    # RubyGems' require and the VM's own, which it calls: Ruby 4.0 shows them as one.
    def with_one_require(frames)
      frames.chunk_while { |one, other| [one.name, other.name].uniq == ["Kernel#require"] }.map(&:first)
    end

    it "are those of a required file" do
      File.write("required.rb", "\n\n#{mark}\n")
      found = frames { require "./required" }
      found = with_one_require(found) if RUBY_VERSION >= "4.0"
      expect(found.first).to have_attributes(name: "<top (required)>", file: File.expand_path("required.rb"), line: 3)
      expect(places(found)).to eq(expected_places)
    end

    it "are those of a loaded file, with its absolute name" do
      File.write("loaded.rb", "\nclass Object\n\n#{mark}\nend\n")
      found = frames { load "loaded.rb" }
      expect(found.first).to have_attributes(name: "<class:Object>", file: File.expand_path("loaded.rb"), line: 4)
      expect(places(found)).to eq(expected_places)
    end

    it "are those passed to eval" do
      found = frames { eval("\n#{mark}", binding, "named.rb", 77) } # rubocop:disable Security/Eval, Style/EvalWithLocation
      expect(found.first).to have_attributes(file: "named.rb", line: 78)
      expect(places(found)).to eq(expected_places)
    end

    it "are those of the evaluated string if eval got none" do
      found = frames { eval("\n#{mark}") } # rubocop:disable Security/Eval, Style/EvalWithLocation
      expect(found.first).to have_attributes(file: /\A\(eval/, line: 2)
      expect(places(found)).to eq(expected_places)
    end

    it "are their callers' for C functions and the VM's own Ruby code" do
      code = "1\n  .then do\n    [2]\n      .map do\n        #{mark}\n      end\n  end"
      program = program("def self.run\n#{code}\nend", line: 0)
      found = frames { program.run }
      expect(found.first(4).map { |frame| [frame.name, frame.line] })
        .to eq([["block (2 levels) in run", 5], ["Array#map", 4], ["block in run", 4], ["Kernel#then", 2]])
      expect(places(found)).to eq(expected_places)
    end

    it "are those of each call of a recursion" do
      program = program("def self.down(left)\nif left.odd?\ndown(left - 1)\nelsif left > 0\ndown(left - 1)\n" \
                        "else\n#{mark}\nend\nend")
      found = frames { program.down(5) }
      expect(found.first(6).map(&:line)).to eq([7, 3, 5, 3, 5, 3])
      expect(places(found)).to eq(expected_places)
    end

    it "begin at the first line of the function" do
      program = program("\ndef self.outer\n  1.then do\n\n    #{mark}\n  end\nend")
      found = frames { program.outer }
      expect(found.values_at(0, 2).map(&:start_line)).to eq([3, 2])
    end
  end
end
