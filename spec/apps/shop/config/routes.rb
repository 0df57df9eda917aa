# frozen_string_literal: true

Rails.application.routes.draw do
  root "products#index"

  resources :products, only: %i[index show]
  resource :search, only: :show
  resource :cart, only: %i[show update destroy]
  resource :report, only: :show
end
