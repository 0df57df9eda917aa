# frozen_string_literal: true

module MemprofilerPprof
  class OnDemand
    # What somebody asks for, and how that is written in the request to a socket.
    #
    # @!attribute name
    #   @return [String] one of {NAMES}
    # @!attribute seconds
    #   @return [Integer, nil] over how many to count allocations, or to sample CPU time
    # @!attribute gc
    #   @return [Boolean] whether to collect garbage first
    # @!attribute names
    #   @return [Symbol, nil] `:ruby` or `:go`: what the values are called
    # @!attribute by
    #   @return [Symbol, nil] what `leaks` groups by
    # @!attribute limit
    #   @return [Integer, nil] how many sites `leaks` and `retainers` show at most
    # @!attribute site
    #   @return [String, nil] of `retainers`, as are the others: see {Collector#retainers}
    # @!attribute class_name
    #   @return [String, nil]
    # @!attribute timeout
    #   @return [Integer, nil]
    # @!attribute in_process
    #   @return [Boolean]
    # @!attribute quick
    #   @return [Boolean] whether `memory` is to walk over no heap
    # @!attribute format
    #   @return [Symbol, nil] a value of {FORMATS}; nil is text
    # @api private
    Request = Struct.new(:name, :seconds, :gc, :names, :by, :limit, :site, :class_name, :timeout, :in_process, :quick,
                         :format, keyword_init: true) do
      # @param target [String] such as "/heap?seconds=1"
      # @return [Request, nil] nil if there is no such thing
      # @raise [ArgumentError] naming the parameter, its value and what is allowed
      def self.parse(target)
        name, query = target.delete_prefix("/").split("?", 2)
        return unless OnDemand::NAMES.include?(name)

        parameters = name == "memory" ? OnDemand::MEMORY_PARAMETERS : OnDemand::PARAMETERS
        new(name: name, **query.to_s.split("&").to_h { |pair| parameter(parameters, *pair.split("=", 2)) })
      end

      def self.parameter(parameters, name = "", text = "")
        allowed, values = parameters.fetch(name) do
          raise ArgumentError, "The parameters are #{parameters.keys.join(", ")}, got #{name.inspect}."
        end
        value = values[decode(text)]
        raise ArgumentError, "#{name} must be #{allowed}, got #{text.inspect}." if value.nil?

        [name == "class" ? :class_name : name.to_sym, value]
      end

      # As URI.decode_www_form_component, which is in a default gem.
      def self.decode(text)
        text.b.tr("+", " ").gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8).scrub
      end
      private_class_method :parameter, :decode

      # @return [String] what {parse} understands
      def target
        given = to_h.except(:name).select { |_, value| value }
        query = given.map { |name, value| "#{name.to_s.delete_suffix("_name")}=#{value == true ? 1 : encode(value)}" }
        ["/#{name}", *(query.join("&") if query.any?)].join("?")
      end

      # @return [Hash{Symbol => Object}] the keywords of {Collector#retainers} that are given
      def question
        { site: site, class_name: class_name, limit: limit, timeout: timeout, in_process: in_process }.compact
      end

      # @return [Symbol] what the answer is: `:text`, `:json`, or `:bytes`
      def kind
        return name == "leaks" ? :text : :bytes unless %w[retainers memory].include?(name)

        { nil => :text, text: :text, json: :json }.fetch(format, :bytes)
      end

      # @return [Integer] how many seconds the answer is expected to take
      def duration
        case name
        when "retainers" then timeout || RETAINERS_TIMEOUT
        when "profile" then seconds || CPU_SECONDS
        else seconds.to_i
        end
      end

      private

      def encode(value)
        value.to_s.b.gsub(%r{[^\w.:/-]}n) { |byte| Kernel.format("%%%02X", byte.ord) }
      end
    end
  end
end
