# frozen_string_literal: true

module Api
  class JarsController < ActionController::API
    before_action { Jar.fill }

    def index
      head :ok
    end
  end
end
