# frozen_string_literal: true

require "fileutils"
require "io/nonblock"
require "io/wait"
require "json"
require "tmpdir"
require_relative "wait_helpers"

# Headless Chromium, driven through the DevTools protocol over a pair of pipes: messages are JSON, each terminated by a
# null byte. https://chromedevtools.github.io/devtools-protocol/
class Browser
  COMMANDS = %w[chromium chromium-browser google-chrome].freeze
  # How many seconds to wait for a response.
  PATIENCE = WaitHelpers::PATIENCE

  class << self
    # @return [String, nil] the program
    def program
      @program ||= COMMANDS.find do |name|
        ENV.fetch("PATH").split(":").any? { |directory| File.executable?(File.join(directory, name)) }
      end
    end

    # One browser for all examples, since starting it takes a second.
    def instance
      @instance ||= new.tap do |browser|
        owner = Process.pid
        # Forked children of other examples exit, too.
        at_exit { browser.quit if Process.pid == owner }
      end
    end
  end

  # The errors on the page, and the addresses it has requested, since it was opened.
  attr_reader :errors, :requests

  def initialize
    @profile = Dir.mktmpdir
    commands, @output = IO.pipe
    @input, answers = IO.pipe
    # Ruby's pipes are non-blocking, which Chromium mistakes for their end.
    [commands, answers].each { |io| io.nonblock = false }
    # Containers have little shared memory, and usually run as root, which the sandbox rejects.
    @pid = spawn(self.class.program, "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=#{@profile}",
                 "about:blank",
                 3 => commands, 4 => answers, out: File::NULL, err: File::NULL, pgroup: true)
    [commands, answers].each(&:close)
    @number = 0
    @received = "".b
    @errors = []
    @requests = []
    attach
  end

  # @param address [String] a URL, or the path of a file
  # @param hash [String] what follows "#"
  # @param width [Integer] of the window, in pixels; height and scale likewise
  # @param dark [Boolean] whether the user prefers dark pages
  def open(address, hash: "", width: 1200, height: 700, scale: 1, dark: false)
    call("Emulation.setDeviceMetricsOverride", width: width, height: height, deviceScaleFactor: scale, mobile: false)
    call("Emulation.setEmulatedMedia",
         features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }])
    # From a page to another hash of its own, a browser would load nothing.
    navigate("about:blank")
    [@errors, @requests].each(&:clear)
    navigate("#{"file://" if address.start_with?("/")}#{address}##{hash}")
    settle
  end

  # @return [Object] the value of the expression
  def evaluate(expression)
    answer = call("Runtime.evaluate", expression: expression, returnByValue: true, awaitPromise: true)
    raise answer.dig("exceptionDetails", "exception", "description") if answer["exceptionDetails"]

    answer.dig("result", "value")
  end

  def text(selector)
    evaluate("document.querySelector(#{selector.to_json}).innerText")
  end

  # Waits until changes have been drawn.
  def settle
    evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
  end

  def press(*keys)
    keys.each do |key|
      characters = key.size == 1 ? { text: key } : {}
      characters = { text: "\r" } if key == "Enter"
      call("Input.dispatchKeyEvent", type: "keyDown", key: key, **characters)
      call("Input.dispatchKeyEvent", type: "keyUp", key: key)
    end
    settle
  end

  def type(text)
    call("Input.insertText", text: text)
    settle
  end

  def move(left, top)
    call("Input.dispatchMouseEvent", type: "mouseMoved", x: left, y: top)
    settle
  end

  def click(left, top)
    %w[mousePressed mouseReleased].each do |type|
      call("Input.dispatchMouseEvent", type: type, x: left, y: top, button: "left", clickCount: 1)
    end
    settle
  end

  # @param selector [String] of an element to click on
  def click_on(selector)
    left, top = evaluate(<<~JS)
      (({ x, y, width, height }) => [x + width / 2, y + height / 2])(
        document.querySelector(#{selector.to_json}).getBoundingClientRect())
    JS
    click(left, top)
  end

  # @return [String] PNG
  def screenshot
    call("Page.captureScreenshot", format: "png").fetch("data").unpack1("m")
  end

  def quit
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  ensure
    FileUtils.rm_rf(@profile)
  end

  # Sends a command and waits for its response.
  def call(method, **parameters)
    number = @number += 1
    message = { id: number, method: method, params: parameters, sessionId: @session }.compact
    @output.write("#{JSON.generate(message)}\0")
    answer = receive until answer && answer["id"] == number
    raise "#{method}: #{answer["error"]}" if answer["error"]

    answer["result"]
  end

  private

  def attach
    target = call("Target.getTargets").fetch("targetInfos").find { |info| info["type"] == "page" }
    @session = call("Target.attachToTarget", targetId: target.fetch("targetId"), flatten: true).fetch("sessionId")
    %w[Page.enable Runtime.enable Log.enable Network.enable].each { |method| call(method) }
    call("Page.setLifecycleEventsEnabled", enabled: true)
  end

  # Loads a document, and waits until it has run its scripts.
  def navigate(url)
    loader = call("Page.navigate", url: url).fetch("loaderId")
    receive until @loaded == loader
  end

  # One message.
  def receive
    until (ended = @received.index("\0"))
      raise "the browser has said nothing for #{PATIENCE} s" unless @input.wait_readable(PATIENCE)

      @received << @input.readpartial(1 << 16)
    end
    message = JSON.parse(@received.slice!(0..ended).chomp("\0").force_encoding(Encoding::UTF_8))
    notice(message["method"], message["params"])
    message
  end

  def notice(method, parameters)
    case method
    when "Page.lifecycleEvent" then @loaded = parameters["loaderId"] if parameters["name"] == "load"
    when "Runtime.exceptionThrown" then @errors << parameters.dig("exceptionDetails", "exception", "description")
    when "Runtime.consoleAPICalled" then @errors << parameters["args"].map { |part| part["value"] }.join(" ")
    when "Log.entryAdded" then @errors << parameters.dig("entry", "text")
    when "Network.requestWillBeSent" then @requests << parameters.dig("request", "url")
    end
  end
end
