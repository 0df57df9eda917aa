# frozen_string_literal: true

class RestockJob < ActiveJob::Base
  def perform
    Jar.fill
  end
end
