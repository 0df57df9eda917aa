# frozen_string_literal: true

Rails.application.routes.draw do
  resources :jars, only: :index
  namespace(:api) { resources :jars, only: :index }
  match "*path", to: "jars#nowhere", via: :all
end
