# frozen_string_literal: true

# For examples about garbage collections.
module GcHelpers
  # The environment of a Ruby whose heap has room from the beginning: it need not collect garbage soon, or grow.
  ROOM = %w[RUBY_GC_HEAP_INIT_SLOTS RUBY_GC_HEAP_0_INIT_SLOTS].to_h { |name| [name, "500000"] }.freeze

  # Whether the block has garbage collected. The VM may always do so of its own accord, but for another reason.
  def collects_garbage?
    before = GC.count
    yield
    GC.count > before && GC.latest_gc_info(:major_by) == :force
  end
end
