# frozen_string_literal: true

module MemprofilerPprof
  class OnDemand
    # What somebody asks for, and how that is written in the request to a socket.
    #
    # @!attribute name
    #   @return [String] one of {NAMES}
    # @!attribute seconds
    #   @return [Integer, nil] over how many to count allocations
    # @!attribute gc
    #   @return [Boolean] whether to collect garbage first
    # @!attribute names
    #   @return [Symbol, nil] `:ruby` or `:go`: what the values are called
    # @!attribute by
    #   @return [Symbol, nil] what `leaks` groups by
    # @!attribute limit
    #   @return [Integer, nil] how many sites `leaks` shows at most
    # @api private
    Request = Struct.new(:name, :seconds, :gc, :names, :by, :limit, keyword_init: true) do
      # @param target [String] such as "/heap?seconds=1"
      # @return [Request, nil] nil if there is no such thing
      # @raise [ArgumentError] naming the parameter, its value and what is allowed
      def self.parse(target)
        name, query = target.delete_prefix("/").split("?", 2)
        return unless OnDemand::NAMES.include?(name)

        new(name: name, **query.to_s.split("&").to_h { |pair| parameter(*pair.split("=", 2)) })
      end

      def self.parameter(name = "", text = "")
        allowed, values = OnDemand::PARAMETERS.fetch(name) do
          raise ArgumentError, "The parameters are #{OnDemand::PARAMETERS.keys.join(", ")}, got #{name.inspect}."
        end
        value = values[text]
        raise ArgumentError, "#{name} must be #{allowed}, got #{text.inspect}." if value.nil?

        [name.to_sym, value]
      end
      private_class_method :parameter

      # @return [String] what {parse} understands
      def target
        given = to_h.except(:name).select { |_, value| value }
        query = given.map { |name, value| "#{name}=#{value == true ? 1 : value}" }
        ["/#{name}", *(query.join("&") if query.any?)].join("?")
      end
    end
  end
end
