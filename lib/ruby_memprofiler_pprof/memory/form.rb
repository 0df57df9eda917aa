# frozen_string_literal: true

module MemprofilerPprof
  class Memory
    # What a ledger must look like: one in a profile may have been written by somebody else.
    # @api private
    module Form
      TEXT = ->(value) { value.is_a?(String) && value.valid_encoding? }
      NUMBER = ->(value) { value.is_a?(Numeric) && value.finite? }
      OPTIONAL = ->(form) { ->(value) { value.nil? || Form.fits?(value, form) } }
      LINE = { key: TEXT, source: TEXT, note: OPTIONAL[TEXT],
               **%i[bytes low high].to_h { |key| [key, OPTIONAL[NUMBER]] } }.freeze
      LIMIT = { bytes: NUMBER, usage_bytes: OPTIONAL[NUMBER], kind: OPTIONAL[TEXT] }.freeze
      HELD_SLOTS = { site: TEXT, bytes: NUMBER, objects: NUMBER }.freeze
      TEXTS = %i[time attached_at allocator].freeze
      NUMBERS = %i[pid elapsed_nanoseconds rss_bytes peak_rss_bytes swap_bytes unexplained_bytes shared_bytes
                   private_bytes empty_page_bytes copied_bytes].freeze
      LEDGER = { lines: [LINE], limit: OPTIONAL[LIMIT], held_slots: OPTIONAL[[HELD_SLOTS]],
                 **TEXTS.to_h { |key| [key, OPTIONAL[TEXT]] }, **NUMBERS.to_h { |key| [key, OPTIONAL[NUMBER]] } }.freeze
      private_constant :TEXT, :NUMBER, :OPTIONAL, :LINE, :LIMIT, :HELD_SLOTS, :TEXTS, :NUMBERS, :LEDGER

      module_function

      # @param value [Object] what JSON says
      def ledger?(value)
        fits?(value, LEDGER)
      end

      # @param form [Hash, Array, Proc] the form of each member, or of all elements, or what tells whether it fits
      def fits?(value, form)
        case form
        when Hash then value.is_a?(Hash) && form.all? { |key, inner| fits?(value[key], inner) }
        when Array then value.is_a?(Array) && value.all? { |each| fits?(each, form.first) }
        else form.call(value)
        end
      end
    end
  end
end
