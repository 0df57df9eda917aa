# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/profile_command"
require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `top`.
    class Top < ProfileCommand
      include SourceOptions

      SUMMARY = "watch what a running process allocates and retains"
      USAGE = "[OPTION]... SOCKET|URL"
      DESCRIPTION = <<~TEXT
        Shows what a process allocates per second and what it retains, by class or site, updated every second. The process
        must run the profiler, and have a socket (the setting `socket`) or a Rack endpoint, whose URL is given instead.
        Watching a process takes nothing away from files or other readers.

        Keys: q or Ctrl-C quits; p or space pauses; Left and Right choose the column to sort by; Tab groups by line,
        method, file, gem; a counts what libraries allocate for the program's own lines; / filters rows by regular
        expression, Esc removes the filter; Up, Down, PageUp, PageDown and Home scroll.
      TEXT
      EXAMPLES = <<~TEXT
        memprofiler run --socket tmp/memprofiler.sock -- puma
        %{me} tmp/memprofiler.sock
        %{me} --by line --sort bytes http://127.0.0.1:3000/debug/pprof
        %{me} --once --limit 5 tmp/memprofiler.sock
      TEXT
      # Whether --app is the default.
      APP = false
      BY = :class

      private

      def define_options(parser)
        super
        orders = MemprofilerPprof::Report::Activity::ORDERS
        parser.on("--sort FIGURE", orders, list(orders), "(default: #{orders.first})") { |sort| @sort = sort }
        define_source(parser)
        parser.on("--once", "print one table and exit (default without a terminal)") { @once = true }
      end

      def define_source(parser)
        parser.on("--interval SECONDS", Integer, "count allocations over this interval, 1 to #{LONGEST_INTERVAL}",
                  "(default: 1)") { |seconds| @interval = check_interval(seconds) }
        define_header(parser)
      end

      # Takes the arguments as they are: they are addresses, not file names.
      def files(arguments)
        arguments
      end

      def show(addresses)
        with_source(addresses) { |source, address| watch(source, address) }
        0
      end

      def watch(source, address)
        seconds = @interval || 1
        terminal = self.terminal unless @once || @format
        return once(address, source.fetch(seconds)) unless terminal

        require "ruby_memprofiler_pprof/cli/top/live"
        view = View.new("#{address}  every #{seconds} s", by: by, sort: sort, app: app?, &method(:narrow))
        Live.new(Screen.new(terminal, $stdout), view, color: style.color) { source.fetch(seconds) }.run
      end

      # The terminal to read keys from, whatever stdin is; nil if the output does not go to one.
      def terminal
        IO.console if $stdout.tty? && ENV["TERM"] != "dumb"
      end

      def by
        @by || BY
      end

      def sort
        @sort || MemprofilerPprof::Report::Activity::ORDERS.first
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
