# frozen_string_literal: true

module MemprofilerPprof
  class Retainers
    # How one object refers to another, in words.
    # @api private
    module Reference
      # References that have a name of their own.
      NAMED = {
        instance_variable: "%s", class_variable: "%s", global: "%s", member: ".%s", local: "local variable %s",
        thread_local: "local %s", thread_variable: "thread variable %s", method: "method %s", value: "{%s:}"
      }.freeze
      # Those that have none.
      NAMELESS = {
        element: "[element]", value: "{value}", key: "{key}", default: "{default}", receiver: "self",
        superclass: "superclass", singleton: "singleton class", class: "class", finalizer: "finalizer",
        inside: "(inside)"
      }.freeze
      private_constant :NAMED, :NAMELESS

      # @param edge [String, Hash{Symbol => Object}, nil] as the JSON has it: the kind, or the kind with the name
      # @return [String, nil] such as "@cards"; nil if it is not known
      def self.text(edge)
        kind, name = edge.is_a?(Hash) ? edge.first : [edge&.to_sym]
        return "::#{name[:name]}" if kind == :constant

        name ? NAMED[kind]&.%(name) : NAMELESS[kind]
      end
    end
  end
end
