# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/profile_command"
require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `top`.
    class Top < ProfileCommand
      include SourceOptions

      SUMMARY = "watch what running processes allocate and retain"
      USAGE = "[OPTION]... PID|SOCKET|DIRECTORY|URL"
      DESCRIPTION = <<~TEXT
        Shows what a process allocates per second and what it retains, by class or site, updated every second. The
        process must run the profiler, and have a socket (the setting `socket`) or a Rack endpoint, whose URL is given
        instead. A PID stands for its socket; `memprofiler attach PID` starts the profiler in a process that runs
        without it. Watching a process takes nothing away from files or other readers. A DIRECTORY of sockets, or a
        quoted pattern, shows all processes side by side; Enter chooses one, Backspace goes back.

        Keys: q or Ctrl-C quits; p or space pauses; Left and Right choose the column to sort by; Tab groups by line,
        method, file, gem; a counts what libraries allocate for the program's own lines; / filters rows by regular
        expression, Esc removes the filter; Up, Down, PageUp, PageDown and Home scroll; m shows where all of the memory is;
        w asks who holds the objects of a row, which pauses the program for a few milliseconds.

        With --cpu it shows where CPU time goes instead, over the last ten intervals.
      TEXT
      EXAMPLES = <<~TEXT
        memprofiler run --socket tmp/memprofiler.sock -- puma
        %{me} tmp/memprofiler.sock
        %{me} tmp/sockets
        %{me} --by line --sort bytes http://127.0.0.1:3000/debug/pprof
        %{me} --once --limit 5 tmp/memprofiler.sock
        %{me} --cpu tmp/memprofiler.sock
      TEXT
      # Whether --app is the default.
      APP = false
      BY = :class

      private

      def define_options(parser)
        super
        # Loaded only here, as in the superclass.
        %w[cpu_view directory live overview processes].each { |name| require "ruby_memprofiler_pprof/cli/top/#{name}" }
        orders = MemprofilerPprof::Report::Activity::ORDERS
        parser.on("--sort FIGURE", orders, list(orders), "(default: #{orders.first})") { |sort| @sort = sort }
        define_source(parser)
        parser.on("--cpu", "watch which lines (or what else is named by --by) use CPU time") { @cpu = true }
        parser.on("--once", "print one table and exit (default without a terminal)") { @once = true }
      end

      def define_source(parser)
        parser.on("--interval SECONDS", Integer, "count allocations over this interval, 1 to #{LONGEST_INTERVAL}",
                  "(default: 1)") { |seconds| @interval = check(seconds, LONGEST_INTERVAL) }
        define_header(parser)
      end

      # Takes the arguments as they are: they are addresses, not file names.
      def files(arguments)
        arguments
      end

      def show(addresses)
        with_source(addresses, advice: "put a pattern into quotes") do |source, address|
          next watch_cpu(source, address) if @cpu

          Directory.address?(address) ? watch_all(Directory.new(address), address) : watch(source, address)
        end
        0
      end

      def watch_cpu(source, address)
        raise Failure, "--cpu takes the socket of one process, got #{address}" if Directory.address?(address)
        return print_cpu(source, address) unless terminal

        live(CPUView, address, by: @by || :line, sort: :flat) { source.cpu(seconds) }
      end

      def print_cpu(source, address)
        top = MemprofilerPprof::Report::Top.new(filter(source.cpu(seconds)), by: @by || :line, limit: @limit)
        return print_json(address: address, top: top.to_h) if @format

        puts "#{address}, CPU time of #{seconds} s", top.to_s(style)
      end

      def watch(source, address)
        return once(address, source.fetch(seconds)) unless terminal

        ask = ->(question, _) { source.retainers(**question) }
        live(View, address, ask: ask) { source.fetch(seconds) }
      end

      def watch_all(directory, address)
        return once_all(address, directory.fetch(seconds)) unless terminal

        ask = ->(question, view) { UnixSocket.new(view.chosen).retainers(**question) }
        live(Overview, address, ask: ask) { |view| view.fetch { |chosen| directory.fetch(seconds, chosen) } }
      end

      # @param type [Class] of the view
      # @param ask [#call, nil] asks who holds what a question is about; takes the question and the view
      # @yieldparam view [View, Overview, CPUView]
      # @yieldreturn [Object] what the view is to show next
      def live(type, address, ask: nil, by: self.by, sort: self.sort)
        view = type.new("#{address}  every #{seconds} s", by: by, sort: sort, app: app?, &method(:narrow))
        options = { color: style.color, ask: ->(question) { ask.call(question, view) } }
        Live.new(Screen.new(terminal, $stdout), view, **options) { yield view }.run
      end

      # The terminal to read keys from, whatever stdin is; nil if the output does not go to one, or is to be printed.
      def terminal
        IO.console if !@once && !@format && $stdout.tty? && ENV["TERM"] != "dumb"
      end

      def seconds
        @interval || 1
      end

      def by
        @by || BY
      end

      def sort
        @sort || MemprofilerPprof::Report::Activity::ORDERS.first
      end

      def once_all(address, answers)
        processes = Processes.new(answers, by: by, sort: sort, limit: @limit) { |profile| filter(profile) }
        return print_json(address: address, processes: processes.to_a) if @format

        puts "#{address}, #{Processes.count(answers)}", "", *processes.lines(style)
      end

      def once(address, profile)
        totals = MemprofilerPprof::Report::Totals.new(profile)
        activity = MemprofilerPprof::Report::Activity.new(filter(profile), by: by, sort: sort, limit: @limit)
        return print_json(address: address, totals: totals.to_h, top: activity.to_h) if @format

        puts "#{address}, pid #{totals["pid"]}", *totals.lines, *activity.summary(style), "",
             *activity.lines(style)
      end

      def print_json(data)
        require "json"
        puts JSON.pretty_generate(data)
      end
    end
  end
end
