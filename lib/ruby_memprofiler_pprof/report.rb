# frozen_string_literal: true

require "ruby_memprofiler_pprof"

module MemprofilerPprof
  # Reports on profiles, as text, JSON and Markdown: tables, trees, growth, leaks. Loaded separately:
  # `require "ruby_memprofiler_pprof/report"`.
  module Report
  end
end

require "ruby_memprofiler_pprof/report/style"
require "ruby_memprofiler_pprof/report/units"
require "ruby_memprofiler_pprof/report/path_shortener"
require "ruby_memprofiler_pprof/report/display_width"
require "ruby_memprofiler_pprof/report/table"
require "ruby_memprofiler_pprof/report/codes"
require "ruby_memprofiler_pprof/report/document"
require "ruby_memprofiler_pprof/report/text"
require "ruby_memprofiler_pprof/report/json"
require "ruby_memprofiler_pprof/report/markdown"
require "ruby_memprofiler_pprof/report/view"
require "ruby_memprofiler_pprof/report/memory"
require "ruby_memprofiler_pprof/report/memory_text"
require "ruby_memprofiler_pprof/report/workers"
require "ruby_memprofiler_pprof/report/totals"
require "ruby_memprofiler_pprof/report/statistics"
require "ruby_memprofiler_pprof/report/site_text"
require "ruby_memprofiler_pprof/report/top"
require "ruby_memprofiler_pprof/report/tree"
require "ruby_memprofiler_pprof/report/counts"
require "ruby_memprofiler_pprof/report/births"
require "ruby_memprofiler_pprof/report/difference"
require "ruby_memprofiler_pprof/report/snapshot"
require "ruby_memprofiler_pprof/report/activity"
require "ruby_memprofiler_pprof/report/cpu_activity"
require "ruby_memprofiler_pprof/report/levels"
require "ruby_memprofiler_pprof/report/trend"
require "ruby_memprofiler_pprof/report/progress"
require "ruby_memprofiler_pprof/report/growth"
require "ruby_memprofiler_pprof/report/memory_change"
require "ruby_memprofiler_pprof/report/memory_growth"
require "ruby_memprofiler_pprof/report/memory_growth_text"
require "ruby_memprofiler_pprof/report/largest_text"
require "ruby_memprofiler_pprof/report/leaks"
require "ruby_memprofiler_pprof/report/leaks_text"
require "ruby_memprofiler_pprof/report/retainers"
require "ruby_memprofiler_pprof/report/retainers_text"
require "ruby_memprofiler_pprof/report/site_holders"
require "ruby_memprofiler_pprof/report/site_rest"
