# frozen_string_literal: true

module MemprofilerPprof
  class Memory
    # A part of the resident memory.
    #
    # @!attribute key
    #   @return [Symbol] such as `:free_slots`
    # @!attribute name
    #   @return [String] what it is called in English
    # @!attribute bytes
    #   @return [Integer, nil] nil if it is not known
    # @!attribute low
    #   @return [Numeric, nil] the lower end of the 95 % interval; nil if it is no estimate
    # @!attribute high
    #   @return [Numeric, nil] its upper end
    # @!attribute source
    #   @return [Symbol] `:exact`, `:estimated`, `:remainder` for what is left when others are subtracted, or `:unknown`
    # @!attribute note
    #   @return [String, nil] why it is not known, or the like
    Line = Struct.new(:key, :name, :bytes, :low, :high, :source, :note) do
      # @api private
      def self.of(hash)
        key = hash.fetch(:key).to_sym
        about = { key: key, name: NAMES.fetch(key) { key.to_s.tr("_", " ") }, source: hash.fetch(:source).to_sym }
        new(*hash.merge(about).values_at(*members)).freeze
      end

      # @return [Array(Numeric, Numeric), nil] from and to; nil if it is no estimate
      def interval
        [low, high] if low && high
      end
    end

    # The free slots in pages of the heap that cannot be freed, since live objects of a site are in them.
    #
    # @!attribute site
    #   @return [String] "FILE:LINE", where these objects were allocated
    # @!attribute bytes
    #   @return [Float] of the free slots, an estimate
    # @!attribute objects
    #   @return [Float] how many live objects keep them, an estimate
    HeldSlots = Struct.new(:site, :bytes, :objects)

    # How much memory the process may have.
    #
    # @!attribute bytes
    #   @return [Integer]
    # @!attribute usage
    #   @return [Integer, nil] what counts towards it, maybe with other processes
    # @!attribute kind
    #   @return [String] such as "cgroup v2"
    Limit = Struct.new(:bytes, :usage, :kind) do
      # @api private
      def self.of(hash)
        new(*hash.values_at(:bytes, :usage_bytes, :kind)).freeze
      end

      # @return [Float, nil] 0..1
      def used
        usage&.fdiv(bytes)
      end
    end

    # What to do about a part of the memory that is large.
    #
    # @!attribute key
    #   @return [Symbol] of the {Line}; `:copied` for what copy-on-write has cost
    # @!attribute text
    #   @return [String] sentences
    # @!attribute at_most
    #   @return [Integer, nil] the most bytes that it can free, which is no estimate; nil if that cannot be told
    Advice = Struct.new(:key, :text, :at_most)

    # What lines are called.
    NAMES = {
      object_slots: "live objects in Ruby's heap", object_memory: "memory that objects own",
      code: "Ruby code (instruction sequences)", free_slots: "free slots in Ruby's heap",
      allocator_free: "free memory that malloc keeps", vm_memory: "Ruby VM and C libraries",
      transient_heap: "transient heap", jit_code: "JIT code", thread_stacks: "thread stacks",
      files_private: "libraries and files, private", files_shared: "libraries and files, shared",
      profiler: "this profiler", unexplained: "unexplained"
    }.freeze
    private_constant :NAMES
  end
end
