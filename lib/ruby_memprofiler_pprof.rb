# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"

# What `memprofiler run` has put before a program loads only the base, before there is any Rails; the
# program's Gemfile comes here later.
require "ruby_memprofiler_pprof/railtie" if defined?(Rails::Railtie)
