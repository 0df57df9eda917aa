# frozen_string_literal: true

require "ruby_memprofiler_pprof/flamegraph"
require "tmpdir"

# The page in a browser, as users see it.
RSpec.describe MemprofilerPprof::Flamegraph, "in a browser" do
  # The height of a row of boxes, and the free space beside them.
  let(:row_height) { 21 }
  let(:margin) { 16 }

  before { skip "Chromium is not installed" unless Browser.program }

  after do
    next unless Browser.program

    expect(browser.errors).to eq([])
    expect(browser.requests.grep_v(%r{\Afile:///})).to eq([])
  end

  def browser
    Browser.instance
  end

  def rails
    "/gems/rails-7.0/lib/rails.rb"
  end

  # <main> calls serve (75 %, of which 2/3 in the gem) and idle (25 %).
  def profile(time: 1, cached: 50, name: "Rails#call")
    maker = Pprof::Maker.new(time: time, weight: 1)
    maker.sample(["<main> /app.rb:1", "serve /app.rb:5"], [100, 4000, 25, 1000], "String")
    maker.sample(["<main> /app.rb:1", "serve /app.rb:5", "#{name} #{rails}:9"], [0, 0, cached, cached * 40], "Array")
    maker.sample(["<main> /app.rb:1", "idle /app.rb:7"], [0, 0, 25, 1000], "String")
    maker.profile
  end

  def visit(*profiles, base: nil, names: nil, min: described_class::MIN, **options)
    @directory ||= Dir.mktmpdir
    path = File.join(@directory, "page.html")
    File.write(path, described_class.new(profiles, base: base, names: names, min: min).to_html)
    browser.open(path, **options)
  end

  after { FileUtils.rm_rf(@directory) if @directory }

  def top
    browser.evaluate("document.getElementById('canvas').getBoundingClientRect().top")
  end

  # A point in a box: its row, counted from the outermost one, and how far to the right it is.
  def point(depth, part)
    width = browser.evaluate("document.getElementById('canvas').getBoundingClientRect().width")
    [margin + (width * part), top + (row_height * depth) + 10]
  end

  def path
    browser.text("#path").split("›").map(&:strip)
  end

  # The red, green and blue of a point.
  def colour(depth, part)
    x, y = point(depth, part)
    browser.evaluate(<<~JS)
      (() => {
        const canvas = document.getElementById("canvas");
        const { left, top, width } = canvas.getBoundingClientRect();
        const ratio = canvas.width / width;
        const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pixel.drawImage(canvas, (#{x} - left) * ratio, (#{y} - 7 - top) * ratio, 1, 1, 0, 0, 1, 1);
        return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3);
      })()
    JS
  end

  def address
    browser.evaluate("location.hash")
  end

  describe "zoom" do
    before { visit(profile) }

    it "goes to the box that is clicked, and out again" do
      browser.click(*point(2, 0.2))
      expect(path).to eq(%w[all <main> serve])
      browser.press("Escape")
      expect(path).to eq(%w[all <main>])
      browser.press("Backspace")
      expect(path).to eq(%w[all])
    end

    it "widens the box to the window" do
      browser.click(*point(2, 0.2))
      browser.move(*point(3, 0.6))
      expect(browser.text("#tooltip")).to start_with("Rails#call")
    end

    it "goes to a breadcrumb" do
      browser.click(*point(3, 0.2))
      browser.click_on("#path button")
      expect(path).to eq(%w[all])
    end

    it "is undone by the browser's back button" do
      browser.click(*point(2, 0.2))
      browser.evaluate("history.back()")
      wait_until { path == %w[all] }
    end
  end

  # Calls f1, which calls f2, and so on: more than the window has room for.
  describe "a box that is far from the outermost call" do
    let(:deep) { Pprof::Maker.new.sample(Array.new(100) { |index| "f#{index + 1} /app.rb:1" }, [1] * 4).profile }

    # The names of the boxes in the outermost three rows of the window.
    def names(flame: false)
      height = browser.evaluate("document.getElementById('canvas').getBoundingClientRect().height")
      Array.new(3) do |row|
        x, y = point(row, 0.5)
        browser.move(x, flame ? (2 * top) + height - y : y)
        browser.text("#tooltip")[/\S+/]
      end
    end

    it "is shown with a caller and what it calls if the address has it" do
      visit(deep, hash: "zoom=50")
      expect(names).to eq(%w[f49 f50 f51])
    end

    it "is shown if the address changes to it" do
      visit(deep)
      browser.evaluate("location.hash = 'zoom=50'")
      wait_until { path.last == "f50" }
      expect(names).to eq(%w[f49 f50 f51])
    end

    it "is shown when the graph is turned" do
      visit(deep, hash: "zoom=50&flame=1")
      browser.press("f")
      expect(names).to eq(%w[f49 f50 f51])
    end

    it "is shown in a flame" do
      visit(deep, hash: "zoom=50&flame=1")
      expect(names(flame: true)).to eq(%w[f49 f50 f51])
    end
  end

  describe "the tooltip" do
    it "shows name, place, gem, figures, intervals and shares" do
      visit(Pprof::Maker.new(weight: 2).sample(["a /app.rb:1"], [1, 40, 100, 4000])
                        .sample(["b #{rails}:3"], [1, 40, 300, 12_000]).profile)
      browser.move(*point(1, 0.2))
      # 300 objects, each standing for at most two: the standard error is the root of 300.
      expect(browser.text("#tooltip").gsub(/\s+/, " "))
        .to include("b #{rails}:1 gem: rails", "retained objects 300 95 %: 266 – 334 75.0 %", "retained size 11.7 KiB")
    end
  end

  # 400 objects each in the program and in a gem, and 200 of a call of the gem that is too small to be shown.
  describe "what is combined" do
    before do
      maker = Pprof::Maker.new(weight: 1)
      [["app /app.rb:1", 400], ["gem #{rails}:1", 400]].each { |frame, own| maker.sample([frame], [own] * 4) }
      200.times { |index| maker.sample(["app /app.rb:1", "small#{index} #{rails}:1"], [1] * 4) }
      visit(maker.profile, min: 0.01)
    end

    it "belongs to no gem" do
      expect(browser.text("#legend").gsub(/\s+/, " ")).to eq("rails 40.0 % app 40.0 % other 20.0 %")
        .or eq("app 40.0 % rails 40.0 % other 20.0 %")
    end

    it "has neither a gem nor a value of its own in its tooltip" do
      browser.move(*point(2, 0.1))
      expect(browser.text("#tooltip")).to start_with("(other)")
      expect(browser.text("#tooltip")).not_to match(/gem:|itself:/)
    end
  end

  describe "of CPU time" do
    # 10 of 100 ticks of 10 ms in one method, 90 in another. The sum is known from clocks.
    def ticks(time: 1, factor: 1)
      types = [%w[samples count], %w[cpu nanoseconds]]
      maker = Pprof::Maker.new(time: time, types: types, period_type: %w[cpu nanoseconds], weight: nil)
      [["a", 10], ["b", 90]].each do |method, count|
        count *= factor
        maker.sample(["#{method} /app.rb:1"], [count, count * 10_000_000])
      end
      maker.profile
    end

    # What the page says of a box.
    def tooltip(depth, part)
      browser.move(*point(depth, part))
      browser.text("#tooltip").gsub(/\s+/, " ")
    end

    it "shows the binomial intervals that reports show" do
      visit(ticks)
      # 0.9 s (1 ± 1.96 sqrt(0.1 / 90)).
      expect(tooltip(1, 0.5)).to include("cpu 900 ms 95 %: 841 ms – 959 ms 90.0 %")
      expect(MemprofilerPprof::Report::Top.new(ticks, by: :method).to_s).to match(/900 ms +841 ms\.\.959 ms .* b  /)
    end

    it "shows that the sum is exact" do
      visit(ticks)
      expect(tooltip(0, 0.5)).to include("cpu 1 s 95 %: 1 s – 1 s")
    end

    it "compares profiles as diff does" do
      visit(ticks(factor: 4), base: ticks)
      # 2.7 s ± 1.96 sqrt(0.1 (3.6² / 360 + 0.9² / 90)).
      expect(tooltip(1, 0.5)).to include("growth +2.7 s 95 %: +2.57 s – +2.83 s")
      expect(MemprofilerPprof::Report::Difference.new(ticks, ticks(factor: 4), by: :method).to_s)
        .to match(/\+2\.70 s +2\.57 s\.\.2\.83 s .* b  /)
    end
  end

  describe "search" do
    before { visit(profile) }

    it "shows which part matches" do
      browser.press("/")
      browser.type("rails#")
      expect(browser.text("#matches")).to eq("50.0 % matched")
    end

    it "fades what does not match" do
      before = colour(3, 0.2)
      other = colour(2, 0.9)
      browser.press("/")
      browser.type("rails#")
      expect(colour(3, 0.2)).to eq(before)
      expect(colour(2, 0.9)).not_to eq(other)
    end

    it "counts nested matches once" do
      browser.press("/")
      browser.type("serve|Rails")
      expect(browser.text("#matches")).to eq("75.0 % matched")
    end

    it "finds files" do
      browser.press("/")
      browser.type("gems/rails-7.0/.*:1$")
      expect(browser.text("#matches")).to eq("50.0 % matched")
    end

    it "reports an invalid regular expression" do
      browser.press("/")
      browser.type("(")
      expect(browser.text("#matches")).to eq("not a regexp")
    end

    it "is ended by Escape" do
      browser.press("/")
      browser.type("rails#")
      browser.press("Escape")
      expect([browser.text("#matches"), address]).to eq(["", ""])
    end
  end

  describe "the value" do
    it "can be switched" do
      visit(profile)
      expect(browser.text("#summary")).to include("retained size 3.91 KiB")
      browser.press("v")
      expect(browser.text("#summary")).to include("allocations 100")
      browser.move(*point(3, 0.2))
      # Nothing was allocated there.
      expect(browser.evaluate("document.getElementById('tooltip').hidden")).to be(true)
    end
  end

  describe "classes" do
    it "are leaves on request" do
      visit(profile)
      browser.press("k")
      browser.move(*point(4, 0.2))
      expect(browser.text("#tooltip")).to start_with("Array\n\nclass of the objects")
    end

    it "can be found" do
      visit(profile, hash: "classes=1&search=^String$")
      expect(browser.text("#matches")).to eq("50.0 % matched")
    end

    it "determine colours" do
      visit(profile, hash: "colour=class")
      expect(browser.text("#legend").gsub(/\s+/, " ")).to match(/(Array 50.0 % String|String 50.0 % Array) 50.0 %/)
      expect(colour(3, 0.2)).not_to eq(colour(2, 0.9))
    end

    it "do not include objects whose class is unknown" do
      maker = Pprof::Maker.new.sample(["a /app.rb:1"], [1] * 4).sample(["a /app.rb:1"], [1] * 4, "String")
      visit(maker.profile, hash: "colour=class")
      expect(browser.text("#legend").gsub(/\s+/, " ")).to eq("String 50.0 % other 50.0 %")
    end
  end

  describe "names" do
    it "are shown unchanged" do
      hostile = "<img src=x onerror=alert(1)>&amp;\u202Egpj"
      visit(profile(name: hostile), hash: "search=onerror")
      browser.press("Enter", "n")
      browser.click(*point(3, 0.2))
      expect(path.last).to eq("<img src=x onerror=alert(1)>&amp;\\u{202e}gpj")
      browser.move(*point(3, 0.2))
      expect(browser.text("#tooltip")).to start_with("<img src=x onerror=alert(1)>&amp;")
    end

    it "may be those that all objects of JavaScript have" do
      visit(Pprof::Maker.lines({ "/gems/constructor-1.0/a.rb:1" => [1, 1] }).profile)
      expect(browser.text("#legend").gsub(/\s+/, " ")).to eq("constructor 100.0 %")
    end
  end

  describe "a difference" do
    before { visit(profile(cached: 20), base: profile(cached: 50), names: %w[new]) }

    it "is blue for less, and grey for no change" do
      red, _, blue = colour(3, 0.1)
      expect(blue).to be > red + 50
      expect(colour(2, 0.9)).to eq([0xd9, 0xdc, 0xe3])
    end

    it "is red for more" do
      visit(profile(cached: 50), base: profile(cached: 20))
      red, _, blue = colour(3, 0.1)
      expect(red).to be > blue + 50
    end

    it "shows by how much" do
      browser.move(*point(3, 0.1))
      expect(browser.text("#tooltip").gsub(/\s+/, " ")).to include("growth −1.17 KiB")
      expect(browser.text("#summary")).to end_with("−1.17 KiB since base")
    end

    # The tooltip's text about growth from 1000 to 1040 objects; the standard error is 3 for each object that is not in
    # both profiles. The profiles say what was allocated before each.
    def growth(*allocated, gap: 0, pids: [7, 7, 7])
      old, *later = [0, *allocated].map.with_index do |count, index|
        counts = [count, index.zero? ? 1000 : 1040]
        time = 1_000_000_000 + (index * 10) + (index.zero? ? 0 : gap)
        Pprof::Maker.lines({ "/app.rb:1" => counts }, time: time, comments: { pid: pids[index] }).profile
      end
      visit(*later, base: old)
      browser.press(*(["]"] * (later.size - 1)))
      browser.move(*point(1, 0.5))
      browser.text("#tooltip").gsub(/\s+/, " ")[/growth.*/]
    end

    it "cancels out survivors, as diff does" do
      # 40 objects of 100 bytes; no more were born: 1.96 * 100 * sqrt(9 * 40).
      expect(growth(40)).to include("95 %: +281 B – +7.54 KiB itself")
      expect(colour(1, 0.5)).not_to eq([0xd9, 0xdc, 0xe3])
    end

    it "cancels out survivors over several profiles" do
      # As many died as were born in addition to the 40: 1.96 * 100 * sqrt(9 * 60).
      expect(growth(30, 20)).to include("95 %: −555 B – +8.35 KiB may be chance")
    end

    it "assumes no survivors if they are unknown" do
      # 1.96 * 100 * sqrt(9 * 2040).
      expect(growth(40, gap: 500)).to include("95 %: −22.0 KiB – +29.8 KiB may be chance")
    end

    it "assumes none in another process" do
      expect(growth(40, pids: [7, 8])).to include("95 %: −22.0 KiB – +29.8 KiB may be chance")
    end

    it "adds what is due to survivors that have grown, as diff does" do
      old, new = [100, 200].map.with_index do |size, index|
        Pprof::Maker.new(time: 1_000_000_000 + (index * 10), duration: 10)
                    .sample(["a /app.rb:1"], [0, 0, 1000, 1000 * size]).sample(["b /b.rb:1"], [1, 1, 1, 1]).profile
      end
      visit(new, base: old)
      browser.move(*point(1, 0.5))
      # 1.96 * sqrt(9 * 1000 (200² - 100²)).
      expect(browser.text("#tooltip").gsub(/\s+/, " ")[/growth.*/]).to include("95 %: +66.2 KiB – +129 KiB")
    end

    describe "of what was sampled in windows" do
      # A line with 1000 objects of groups 2 and 3, and as many more of another group.
      def in_windows(more)
        windows = Array.new(16) { |group| { 2 => 5, 3 => 5, 9 => more }.fetch(group, 0) }
        Pprof::Maker.lines({ "/app.rb:1" => [0, 1000 + (100 * more)] }, windows: windows).profile
      end

      it "shows the interval by groups of windows" do
        visit(in_windows(0))
        browser.move(*point(1, 0.5))
        # 2.131 * 100 * sqrt(16/15 (2 * 500² - 1000²/16)).
        expect(browser.text("#tooltip").gsub(/\s+/, " ")).to include("retained size 97.7 KiB 95 %: 0 B – 240 KiB")
      end

      it "cancels out what is in both profiles by groups of windows" do
        visit(in_windows(1), base: in_windows(0))
        browser.move(*point(1, 0.5))
        # 100 objects of 100 bytes, of one group: 2.131 * 100 * 100.
        expect(browser.text("#tooltip").gsub(/\s+/, " ")).to include("growth +9.77 KiB 95 %: −11.0 KiB – +30.6 KiB")
      end
    end

    it "fills a box up to its current value" do
      expect(colour(3, 0.1)).not_to eq(colour(3, 0.4))
    end
  end

  describe "a series" do
    before { visit(profile(time: 10, cached: 100), profile(time: 5, cached: 50), names: %w[later earlier]) }

    def moment
      browser.text("#moment")[/\A\d of \d/]
    end

    it "begins with the last profile" do
      expect([moment, browser.evaluate("document.getElementById('moment').title")]).to eq(["2 of 2", "later"])
    end

    it "keeps boxes in the same places at all times" do
      browser.move(*point(2, 0.9))
      later = browser.text("#tooltip").lines.first
      browser.press("[")
      browser.move(*point(2, 0.9))
      expect([moment, browser.text("#tooltip").lines.first]).to eq(["1 of 2", later])
      expect(browser.text("#summary")).to include("retained size 3.91 KiB")
    end

    it "fills a box in proportion to its maximum" do
      # The box has 100 of 150 objects at the end, and had 50 before.
      ends = [0.1, 0.6]
      expect(ends.map { |part| colour(3, part) }.uniq.size).to eq(1)
      browser.press("[")
      expect(ends.map { |part| colour(3, part) }.uniq.size).to eq(2)
    end

    it "is played from the beginning" do
      browser.evaluate("const moment = document.getElementById('moment'); window.shown = []; new MutationObserver(" \
                       "() => shown.push(moment.innerText)).observe(moment, { childList: true, characterData: true })")
      browser.press(" ")
      wait_until { browser.evaluate("shown.length") > 1 }
      # When it has reached the end, the last one is shown again.
      expect(browser.evaluate("shown").first(2).map { |text| text[/\A\d of \d/] }).to eq(["1 of 2", "2 of 2"])
    end

    it "is stepped through with the slider" do
      browser.evaluate("document.getElementById('time').focus()")
      browser.evaluate("const slider = document.getElementById('time'); slider.value = 0; " \
                       "slider.dispatchEvent(new Event('input')); 1")
      expect(moment).to eq("1 of 2")
    end
  end

  describe "the keyboard" do
    before { visit(profile) }

    def details
      browser.text("#details").split("·").first.strip
    end

    it "moves the focus" do
      browser.press("ArrowDown", "ArrowDown")
      expect(details).to eq("serve")
      browser.press("ArrowRight")
      expect(details).to eq("idle")
      browser.press("ArrowLeft", "ArrowDown")
      expect(details).to eq("Rails#call")
      browser.press("ArrowUp")
      expect(details).to eq("serve")
    end

    it "zooms" do
      browser.press("ArrowDown", "ArrowDown", "Enter")
      expect(path.last).to eq("serve")
      browser.press("Home")
      expect(path).to eq(%w[all])
    end

    it "moves from match to match" do
      browser.press("/")
      browser.type("serve|idle")
      browser.press("Enter")
      expect(details).to eq("serve")
      browser.press("n")
      expect(details).to eq("idle")
    end

    it "goes to the first match, whichever box is selected" do
      browser.press("ArrowDown", "ArrowDown", "/")
      browser.type("serve|idle")
      browser.press("Enter")
      expect(details).to eq("serve")
    end

    # A match with 300 objects, a caller that has more itself, and another call.
    def find_narrow(caller_itself, other)
      maker = Pprof::Maker.new.sample(["caller /app.rb:2", "match /app.rb:3"], [300] * 4)
      maker.sample(["caller /app.rb:2"], [caller_itself] * 4).sample(["other /app.rb:1"], [other] * 4)
      visit(maker.profile)
      browser.press("/")
      browser.type("match")
      browser.press("Enter")
    end

    it "zooms to the caller of a match that is too narrow to be seen" do
      find_narrow(700, 1_000_000)
      expect([path, details]).to eq([%w[all caller], "match"])
    end

    it "zooms to the match itself if it is too narrow even there" do
      find_narrow(1_000_000, 700)
      expect([path, details]).to eq([%w[all caller match], "match"])
    end

    it "leaves Home to the slider that has the focus" do
      visit(profile(time: 1), profile(time: 2), hash: "zoom=2")
      browser.evaluate("document.getElementById('time').focus()")
      browser.press("Home")
      expect(path.last).to eq("serve")
    end

    it "leaves letters to the selection that has the focus" do
      browser.evaluate("document.getElementById('value').focus()")
      browser.press("f")
      expect(address).to eq("")
    end

    it "shows help" do
      browser.press("?")
      expect(browser.text("#keys")).to include("search by regular expression")
    end
  end

  describe "the flame" do
    it "has the outermost call at the bottom" do
      visit(profile, hash: "flame=1")
      height = browser.evaluate("document.getElementById('canvas').getBoundingClientRect().height")
      x, = point(0, 0.2)
      browser.move(x, top + height - row_height - 10)
      expect(browser.text("#tooltip")).to start_with("<main>")
      browser.press("ArrowUp", "ArrowUp")
      expect(browser.text("#details")).to start_with("serve")
    end
  end

  describe "the theme" do
    def background
      browser.evaluate("getComputedStyle(document.body).backgroundColor")
    end

    it "is what the user prefers" do
      visit(profile, dark: true)
      dark = background
      visit(profile, dark: false)
      expect([dark, background]).to eq(["rgb(21, 23, 28)", "rgb(251, 251, 252)"])
    end

    it "can be switched" do
      visit(profile)
      box = colour(1, 0.5)
      browser.click_on("#theme")
      expect([background, colour(1, 0.5) == box, address]).to eq(["rgb(21, 23, 28)", false, "#theme=dark"])
    end
  end

  describe "the address" do
    it "records what is shown" do
      visit(profile)
      browser.press("v", "f", "k", "c", "t", "ArrowUp", "ArrowUp", "Enter", "/")
      browser.type("a")
      kept = address
      expect(kept.delete_prefix("#").split("&").map { |pair| pair[/\w+/] })
        .to eq(%w[value colour flame classes zoom search theme])
      visit(profile, hash: kept.delete_prefix("#"))
      browser.press("f", "f")
      expect([address, path]).to eq([kept, %w[all <main> serve]])
    end

    it "may be invalid" do
      visit(profile, hash: "value=x&colour=growth&zoom=999&time=7&search=(&theme=pink&flame=2")
      expect(path).to eq(%w[all])
    end
  end

  it "is as sharp as the screen allows, and follows the window's size" do
    visit(profile, width: 800, scale: 2)
    size = "document.getElementById('canvas').width"
    expect(browser.evaluate(size)).to eq(2 * (800 - (2 * margin)))
    browser.call("Emulation.setDeviceMetricsOverride", width: 600, height: 500, deviceScaleFactor: 2, mobile: false)
    browser.settle
    expect(browser.evaluate(size)).to eq(2 * (600 - (2 * margin)))
  end

  it "shows an empty profile" do
    visit(Pprof::Maker.new.profile)
    expect(browser.text("#summary")).to include("retained size 0 B")
  end
end
