# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::Argument" do
  let(:argument) { MemprofilerPprof::Argument }

  it "returns an allowed value" do
    expect([argument.check(:a, "b", "a String") { true }, argument.one_of(:a, :b, %i[b c]), argument.integer(:a, 0),
            argument.number(:a, 0.0), argument.seconds(:a, 1r)]).to eq(["b", :b, 0, 0.0, 1r])
  end

  {
    check: [["b", "an Integer"], {}, ArgumentError, 'a must be an Integer, got "b"'],
    one_of: [[:d, %i[b c]], {}, ArgumentError, "a must be one of :b, :c, got :d"],
    integer: [[1.5], { from: 2 }, TypeError, "a must be an Integer from 2, got 1.5"],
    number: [["1"], {}, TypeError, 'a must be a number, got "1"'],
    seconds: [[1i], {}, TypeError, "a must be a number of seconds, got (0+1i)"]
  }.each do |method, (arguments, options, error, message)|
    it "names the argument, its value and what is allowed by #{method}" do
      expect { argument.public_send(method, :a, *arguments, **options) { false } }.to raise_error(error, message)
    end
  end

  {
    integer: [{ from: 2 }, 1, "an Integer from 2"],
    number: [{}, -0.1, "a finite number from 0"],
    seconds: [{}, 0, "a finite number of seconds above 0"]
  }.each do |method, (options, value, allowed)|
    it "enforces the minimum of #{method}" do
      expect { argument.public_send(method, :a, value, **options) }
        .to raise_error(ArgumentError, "a must be #{allowed}, got #{value}")
    end
  end

  it "allows only finite numbers" do
    %i[number seconds].product([Float::NAN, Float::INFINITY]).each do |method, value|
      expect { argument.public_send(method, :a, value) }.to raise_error(ArgumentError, /a must be a finite number/)
    end
  end
end
