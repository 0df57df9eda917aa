# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What reports state, in a word that stays the same: for programs that read their JSON or Markdown.
    # docs/reports-and-leaks.md has the same list.
    module Codes
      # About lines in a series: the verdicts of {Leaks}.
      GROWING = "GROWING"
      SLOWING = "SLOWING"
      PERHAPS = "PERHAPS"
      SETTLED = "SETTLED"
      STEADY = "STEADY"
      UNCLEAR = "UNCLEAR"

      # About sites in a {Difference}.
      GREW = "GREW"
      SHRANK = "SHRANK"
      UNCERTAIN = "UNCERTAIN"

      # About one profile: sites of {Top} and calls of {Tree}.
      SITE = "SITE"
      CALL = "CALL"

      # About who holds what a site has.
      HOLDER = "HOLDER"
      # About the objects that keep the most memory alive.
      LARGEST = "LARGEST"
      # About an answer to who holds what as a whole.
      HEAP = "HEAP"
      PAUSED = "PAUSED"
      UNREACHABLE = "UNREACHABLE"
      UNNAMED = "UNNAMED"

      # About where the memory of a process is: its lines, and which sites keep free slots.
      LINE = "LINE"
      HELD_SLOTS = "HELD_SLOTS"
      # About a series of it.
      MEMORY_GROWS = "MEMORY_GROWS"
      MEMORY_STEADY = "MEMORY_STEADY"
      # About processes side by side.
      PROCESS = "PROCESS"
      ALL = "ALL"
      # About all of it.
      RESIDENT = "RESIDENT"
      PARTS = "PARTS"
      RESIDENT_CHANGE = "RESIDENT_CHANGE"
      SHARED = "SHARED"
      SWAPPED = "SWAPPED"
      LIMIT = "LIMIT"
      MEASURED = "MEASURED"

      # About a profile as a whole.
      EXPLAINED = "EXPLAINED"
      SEEN = "SEEN"
      LOST = "LOST"
      WINDOWS = "WINDOWS"
      ATTACHED = "ATTACHED"
      INCOMPLETE = "INCOMPLETE"
      AT_EXIT = "AT_EXIT"

      # About what was put together.
      TOO_FEW_PROFILES = "TOO_FEW_PROFILES"
      NO_MAJOR_COLLECTION = "NO_MAJOR_COLLECTION"
      SINGLE_PROFILES = "SINGLE_PROFILES"
      NOT_IN_SERIES = "NOT_IN_SERIES"
      DIFFERENT_PROCESSES = "DIFFERENT_PROCESSES"
      DIFFERENT_INTERVALS = "DIFFERENT_INTERVALS"
      DIFFERENT_TAGS = "DIFFERENT_TAGS"
      SAME_PROCESS = "SAME_PROCESS"
      NO_MATCH = "NO_MATCH"
      HOLDERS = "HOLDERS"
      NO_ANSWER = "NO_ANSWER"
    end
  end
end
