# frozen_string_literal: true

class Order < ApplicationRecord
  has_many :lines, class_name: "OrderLine", dependent: :destroy
end
