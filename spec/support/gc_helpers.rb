# frozen_string_literal: true

# For examples about garbage collections.
module GcHelpers
  # Whether the block has garbage collected. The VM may always do so of its own accord, but for another reason.
  def collects_garbage?
    before = GC.count
    yield
    GC.count > before && GC.latest_gc_info(:major_by) == :force
  end
end
