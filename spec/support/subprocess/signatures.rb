# frozen_string_literal: true

# Writes what the signatures in a directory say about this gem, see Signatures.
require "rbs"

# The numbers of positional arguments, and the names of keywords.
def parameters(signature)
  function = signature.method_types.first.type
  [function.required_positionals.size + function.trailing_positionals.size, function.optional_positionals.size,
   function.rest_positionals ? 1 : 0, function.required_keywords.keys.sort, function.optional_keywords.keys.sort]
end

# The methods of a class itself, without inherited ones, by name.
def own(type, definition)
  definition.methods.select { |_, signature| signature.defined_in == type }
            .transform_values { |signature| parameters(signature) }
end

loader = RBS::EnvironmentLoader.new
loader.add(path: Pathname(ARGV.first))
environment = RBS::Environment.from_loader(loader).resolve_type_names
builder = RBS::DefinitionBuilder.new(env: environment)

modules = environment.class_decls.keys.select { |type| type.to_s.match?(/\A::MemprofilerPprof\b/) }.to_h do |type|
  constants = environment.constant_decls.keys.select { |name| name.namespace == type.to_namespace }
  [type.to_s.delete_prefix("::"),
   { constants: constants.map(&:name), instance_methods: own(type, builder.build_instance(type)),
     singleton_methods: own(type, builder.build_singleton(type)).except(:new) }]
end
types = environment.constant_decls.select { |name, _| name.namespace.empty? }
                   .to_h { |name, entry| [name.name.to_s, entry.decl.type.to_s] }
$stdout.binmode.write(Marshal.dump({ modules: modules, types: types }))
