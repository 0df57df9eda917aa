# frozen_string_literal: true

module MemprofilerPprof
  class Retainers
    # How one object refers to another, in words.
    # @api private
    module Reference
      # References that have a name of their own.
      NAMED = {
        instance_variable: "%s", class_variable: "%s", global: "%s", constant: "::%s", member: ".%s",
        local: "captures %s", thread_local: "local %s", thread_variable: "variable %s", method: "#%s", value: "[:%s]"
      }.freeze
      # Those that have none.
      NAMELESS = {
        element: "[element]", value: "{value}", key: "{key}", default: "{default}", receiver: "captures self",
        superclass: "superclass", singleton: "singleton class", class: "class", finalizer: "finalizer"
      }.freeze
      # Those that read otherwise after a thread or fiber, which captures nothing.
      OF_THREADS = { local: "local variable %s", receiver: "self" }.freeze
      private_constant :NAMED, :NAMELESS, :OF_THREADS

      # @param edge [String, Hash{Symbol => Object}, nil] as the JSON has it: the kind, or the kind with the name
      # @param from [Symbol, nil] the kind of the object that refers
      # @return [String, nil] such as "@cards"; nil if it is not known
      def self.text(edge, from = nil)
        kind, name = edge.is_a?(Hash) ? edge.first : [edge&.to_sym]
        name = name[:name] if kind == :constant
        # Not format, with which Ruby would warn if there is a name, and no place for it.
        pattern(kind, name, from)&.sub("%s") { name.to_s }
      end

      def self.pattern(kind, name, from)
        (OF_THREADS[kind] if from == :thread) || (name ? NAMED : NAMELESS)[kind]
      end
      private_class_method :pattern
    end
  end
end
