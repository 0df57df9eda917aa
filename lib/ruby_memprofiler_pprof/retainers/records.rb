# frozen_string_literal: true

require "ruby_memprofiler_pprof/retainers/reference"

module MemprofilerPprof
  class Retainers
    # Sampled objects that no root reaches.
    #
    # @!attribute samples
    #   @return [Integer] how many were sampled
    # @!attribute objects
    #   @return [Float] how many objects they stand for
    # @!attribute bytes
    #   @return [Float] the bytes of those
    Unreachable = Struct.new(:samples, :objects, :bytes) do
      # @api private
      def self.of(hash)
        new(*hash.values_at(*members)).freeze
      end
    end

    # The objects that one line allocated and that are alive.
    #
    # @!attribute name
    #   @return [String] "FILE:LINE", or the method if the line is not known
    # @!attribute file
    #   @return [String, nil]
    # @!attribute line
    #   @return [Integer, nil]
    # @!attribute function
    #   @return [String, nil] the method that the line is in
    # @!attribute samples
    #   @return [Integer] how many of them were sampled
    # @!attribute objects
    #   @return [Profile::Estimate] how many there are
    # @!attribute bytes
    #   @return [Profile::Estimate] their bytes
    # @!attribute classes
    #   @return [Hash{String => Float}] the three classes with the most bytes, with these bytes
    # @!attribute unreachable_bytes
    #   @return [Float, nil] the bytes of those that nothing reaches; nil if it is from a file
    # @!attribute holders
    #   @return [Array<Holder>] those with the largest share first
    # @!attribute other_holders
    #   @return [Integer, nil] how many others there are, with smaller shares, which are not among these
    # @!attribute other_holders_bytes
    #   @return [Float, nil] the bytes of what those hold
    Site = Struct.new(:name, :file, :line, :function, :samples, :objects, :bytes, :classes, :unreachable_bytes,
                      :holders, :other_holders, :other_holders_bytes) do
      # @api private
      def self.of(hash)
        estimates = hash.slice(:objects, :bytes).transform_values do |each|
          Profile::Estimate.new(*each.values_at(*Profile::Estimate.members)).freeze
        end
        classes = hash.fetch(:classes).to_h { |each| each.values_at(:name, :bytes) }.freeze
        holders = hash.fetch(:holders).map { |each| Holder.of(each) }.freeze
        new(*hash.merge(estimates, classes: classes, holders: holders).values_at(*members)).freeze
      end
    end

    # What holds objects of a site.
    #
    # @!attribute share
    #   @return [Float] of the site's bytes, 0..1
    # @!attribute samples
    #   @return [Integer] how many objects of the site were sampled that it holds
    # @!attribute objects
    #   @return [Float] how many objects they stand for
    # @!attribute bytes
    #   @return [Float] the bytes of those
    # @!attribute exclusive
    #   @return [Boolean, nil] whether most of them live only through the chain; nil if that is not known
    # @!attribute also
    #   @return [Array<String>] other references by which most of the objects are reached, some of them, on one line
    #   each
    # @!attribute alike
    #   @return [Integer, nil] how many chains say the same, such as those from several threads; this is one of them
    # @!attribute phrase
    #   @return [String] the chain on one line, such as "ProductCardCache.@cards → Hash (6,724)"
    # @!attribute chain
    #   @return [Array<Link>] from where a programmer would begin to where the objects accumulate
    # @!attribute folded
    #   @return [String, nil] what the chain leaves out, such as "3 steps of activesupport"
    # @!attribute example
    #   @return [Array<Link>] from below the end of the chain to one of the sampled objects
    Holder = Struct.new(:share, :samples, :objects, :bytes, :exclusive, :also, :alike, :phrase,
                        :chain, :folded, :example) do # rubocop:disable Lint/StructNewOverride
      # @api private
      def self.of(hash)
        chain, example = hash.values_at(:chain, :example)
        links = { chain: Link.list(chain), example: Link.list(example, chain.last) }
        new(*hash.merge(links, also: hash[:also] || []).values_at(*members)).freeze
      end

      # @return [Integer, nil] the bytes that would be freed with the object at the end of the chain
      def retained
        chain.last&.retained
      end
    end

    # An object that keeps much memory alive, whoever allocated it. What a class or thread has besides other objects and
    # classes is together one.
    #
    # @!attribute bytes
    #   @return [Integer] what would be freed with it, exactly; with all that are alike
    # @!attribute alike
    #   @return [Integer] how many chains say the same, such as those to several threads; this is one of them
    # @!attribute phrase
    #   @return [String] the chain on one line
    # @!attribute chain
    #   @return [Array<Link>] from where a programmer would begin to the object
    # @!attribute folded
    #   @return [String, nil] what the chain leaves out
    Largest = Struct.new(:bytes, :alike, :phrase, :chain, :folded) do # rubocop:disable Lint/StructNewOverride
      # @api private
      def self.of(hash)
        new(*hash.merge(chain: Link.list(hash[:chain])).values_at(*members)).freeze
      end
    end

    # An object on a path.
    #
    # @!attribute text
    #   @return [String] what it is called: a class by its name, a thread as `Thread "puma 003"`, else by its class
    # @!attribute reference
    #   @return [String, nil] how the object before refers to it, such as "@cards"; nil if that is not known
    # @!attribute phrase
    #   @return [String] the reference with both of its ends, such as "ProductCardCache.@cards → Hash"
    # @!attribute elements
    #   @return [Integer, nil] the number of entries of an Array or Hash
    # @!attribute retained
    #   @return [Integer, nil] the bytes that would be freed with it: its own and those of what lives only through it
    # @!attribute kind
    #   @return [Symbol, nil] `:anchor` for a named class or module and the table of global variables, `:thread`,
    #     `:ended_thread`, `:code`, `:category` for a kind of roots, `:plain` for any other object
    # @!attribute file
    #   @return [String, nil] the file that defines it, or the constant that refers to it
    # @!attribute line
    #   @return [Integer, nil]
    Link = Struct.new(:text, :reference, :phrase, :elements, :retained, :kind, :file, :line) do
      # @param hashes [Array<Hash{Symbol => Object}>]
      # @param before [Hash{Symbol => Object}, nil] the object that refers to the first one
      # @return [Array<Link>]
      # @api private
      def self.list(hashes, before = nil)
        hashes.zip([before, *hashes]).map { |hash, referrer| of(hash, referrer&.[](:kind)&.to_sym) }.freeze
      end

      # @api private
      def self.of(hash, referrer)
        own = { reference: Reference.text(hash[:edge], referrer), elements: hash[:count], kind: hash[:kind]&.to_sym }
        new(*hash.merge(own).values_at(*members)).freeze
      end
    end
  end
end
