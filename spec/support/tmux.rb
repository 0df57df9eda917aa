# frozen_string_literal: true

require "open3"
require "shellwords"

# A real terminal with a shell in it, on a separate tmux server in the current directory.
class Tmux
  # Lines and columns.
  SIZE = [24, 110].freeze

  class << self
    # @return [Boolean] whether tmux is installed
    def available?
      system("tmux", "-V", out: File::NULL, err: File::NULL) ? true : false
    end

    # Yields a terminal, which is closed afterwards.
    def open
      terminal = new
      yield terminal
    ensure
      terminal&.quit
    end
  end

  def initialize
    lines, columns = SIZE
    tmux("-f", File::NULL, "new-session", "-d", "-x", columns.to_s, "-y", lines.to_s,
         "env", "-u", "RUBYOPT", "-u", "COLUMNS", "-u", "NO_COLOR", "PS1=$ ", "bash", "--norc", "--noprofile")
  end

  # @param keys [Array<String>] as tmux calls them: "Enter", "C-c", "Left", "x"
  def press(*keys)
    tmux("send-keys", *keys)
  end

  # @param text [String] to type
  def type(text)
    tmux("send-keys", "-l", text)
  end

  # Types a command into the shell.
  def run(*command)
    type(command.shelljoin)
    press("Enter")
  end

  # @return [String] what is on the screen
  def text
    tmux("capture-pane", "-p")
  end

  # @return [String] with colours and the like
  def styled_text
    tmux("capture-pane", "-p", "-e")
  end

  def resize(lines, columns)
    tmux("resize-window", "-x", columns.to_s, "-y", lines.to_s)
  end

  # What a program may have changed: whether the alternate screen is shown, the cursor, and whether lines wrap.
  def state
    ask("alternate_on", "cursor_flag", "wrap_flag")
  end

  # @return [Integer] the process in the foreground, which the shell has started
  def foreground
    shell = ask("pane_pid").to_i
    File.read("/proc/#{shell}/task/#{shell}/children").split.last.to_i
  end

  # @return [String] the modes of the terminal: raw, echo and so on
  def modes
    Open3.capture2("stty", "-g", "-F", ask("pane_tty")).first
  end

  def quit
    tmux("kill-server")
  rescue RuntimeError
    # It had none.
    nil
  end

  private

  # @return [String] the values of tmux's variables
  def ask(*names)
    tmux("display-message", "-p", names.map { |name| "\#{#{name}}" }.join(" ")).chomp
  end

  def tmux(*arguments)
    output, status = Open3.capture2e({ "TMUX" => nil }, "tmux", "-S", File.expand_path("tmux"), *arguments)
    raise "tmux #{arguments.join(" ")}: #{output}" unless status.success?

    output
  end
end
