# frozen_string_literal: true

require "rails/generators/base"

module MemprofilerPprof
  # `rails generate` looks here.
  module Generators
    # `rails generate memprofiler_pprof:install`
    # @api private
    class InstallGenerator < ::Rails::Generators::Base
      # What keeps the profiles out of git, if it stands there.
      IGNORED = %r{^/?tmp/?$|^/?tmp/\*|^/?tmp/profiles}

      source_root File.expand_path("templates", __dir__)
      desc "Creates config/initializers/memprofiler_pprof.rb, and has git ignore tmp/profiles"

      def copy_initializer
        copy_file "memprofiler_pprof.rb", "config/initializers/memprofiler_pprof.rb"
      end

      def ignore_profiles
        path = File.join(destination_root, ".gitignore")
        return create_file(".gitignore", "/tmp/profiles/\n") unless File.exist?(path)

        append_to_file(".gitignore", "\n/tmp/profiles/\n") unless File.read(path).match?(IGNORED)
      end
    end
  end
end
