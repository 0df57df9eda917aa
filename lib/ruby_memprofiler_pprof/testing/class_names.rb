# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # The names that profiles have for a class and those below it, or for the classes that include a module. They come
    # from the classes, not from constants of such names: those may be gone, or be another class by now, and to look
    # them up may load them. What a class answers itself is not asked for, since it can have such methods of its own.
    # @api private
    module ClassNames
      NAME = Module.instance_method(:name)
      BELOW = Module.instance_method(:<=)
      SINGLETON = Module.instance_method(:singleton_class?)
      SUPERCLASS = Class.instance_method(:superclass)
      private_constant :NAME, :BELOW, :SINGLETON, :SUPERCLASS

      class << self
        # @param type [Module]
        # @return [String, nil]
        def own(type)
          NAME.bind_call(type)
        end

        # Anonymous classes that are gone by now can only be below classes with a name.
        #
        # @param type [Module]
        # @return [Hash{String => true}]
        def below(type)
          ObjectSpace.each_object(Class).with_object({}) do |found, names|
            next unless BELOW.bind_call(found, type) && !SINGLETON.bind_call(found)

            named = nearest_named(found)
            names[own(named)] = true if named.equal?(found)
            names["(anonymous #{own(named)})"] = true
          end
        end

        private

        def nearest_named(type)
          type = SUPERCLASS.bind_call(type) until own(type)
          type
        end
      end
    end
  end
end
