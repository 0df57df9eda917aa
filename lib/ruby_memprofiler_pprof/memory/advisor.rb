# frozen_string_literal: true

module MemprofilerPprof
  class Memory
    # Knows what to do about parts of the memory that are large. It says only what is known to help, and how much that
    # can free at most, which is what is there.
    # @api private
    module Advisor
      # Below this share of the resident memory, or below so many bytes, nothing is large.
      LARGE = 0.1
      LEAST = 8_388_608
      # By how the allocator's name begins.
      ALLOCATORS = {
        "glibc" => "malloc keeps memory that nothing uses. malloc_trim(0) returns the whole pages of it to the " \
                   "system, as does Process.warmup from Ruby 3.3 on; where many threads allocate MALLOC_ARENA_MAX=2 " \
                   "keeps it small, and so does jemalloc.",
        "jemalloc" => "jemalloc keeps memory that nothing uses. MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0 " \
                      "returns the whole pages of it to the system sooner, narenas:2 keeps it small.",
        "tcmalloc" => "tcmalloc keeps memory that nothing uses. MallocExtension_ReleaseFreeMemory returns the whole " \
                      "pages of it to the system; a greater TCMALLOC_RELEASE_RATE does so sooner."
      }.freeze
      COMPACT = "Live objects are scattered over Ruby's heap, so that pages with free slots cannot be freed. " \
                "GC.compact moves objects together, where the platform has it."
      EMPTY = "Most of it are pages in which no object is, kept for objects to come. Process.warmup frees them from " \
              "Ruby 3.3 on."
      COPIED = "Pages that were shared were written to after the fork. Process.warmup (before Ruby 3.3 GC.compact) " \
               "just before the fork keeps more of them shared."
      # What to say of each line; nil if nothing is known to help.
      TEXTS = {
        allocator_free: ->(memory) { ALLOCATORS.find { |name, _| memory.allocator.to_s.start_with?(name) }&.last },
        free_slots: lambda do |memory|
          next EMPTY if memory.empty_page_bytes.to_i * 2 > memory[:free_slots]

          [COMPACT, *keepers(memory)].join(" ")
        end,
        code: ->(_) { "Gems that the process does not use need not be loaded: `require: false` in the Gemfile." },
        jit_code: ->(_) { "--yjit-exec-mem-size bounds what YJIT compiles, in MiB." },
        copied: ->(_) { COPIED }
      }.freeze
      # How much less a process would need is not known.
      UNBOUNDED = %i[code jit_code].freeze
      private_constant :LARGE, :LEAST, :ALLOCATORS, :COMPACT, :EMPTY, :COPIED, :TEXTS, :UNBOUNDED

      class << self
        # @param memory [Memory]
        # @return [Array<Advice>] about what is largest first
        def advice(memory)
          sizes = sizes(memory).sort_by { |_, bytes| -bytes }
          sizes.filter_map do |key, bytes|
            text = TEXTS.fetch(key).call(memory)
            Advice.new(key, text, (bytes unless UNBOUNDED.include?(key))).freeze if text
          end
        end

        private

        # Of what is large.
        def sizes(memory)
          least = [memory.rss.to_i * LARGE, LEAST].max
          TEXTS.keys.to_h { |key| [key, (key == :copied ? memory.copied_bytes : memory[key]).to_i] }
               .select { |_, bytes| bytes >= least }
        end

        def keepers(memory)
          held = memory.held_slots.max_by(&:bytes)
          "Objects allocated at #{held.site} keep the most of them." if held
        end
      end
    end
  end
end
