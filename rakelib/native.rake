# frozen_string_literal: true

desc "Build a precompiled gem for this platform, with a library for this Ruby and for each of script/matrix"
task(:native) { sh "script/native" }
