# frozen_string_literal: true

ActiveRecord::Schema.define(version: 1) do
  create_table :categories, force: :cascade do |t|
    t.string :name, null: false
  end

  create_table :products, force: :cascade do |t|
    t.references :category, null: false
    t.string :name, null: false
    t.text :description, null: false
    t.json :specification, null: false
    t.integer :price_cents, null: false
    t.integer :stock, null: false
    t.timestamps
  end

  create_table :reviews, force: :cascade do |t|
    t.references :product, null: false
    t.string :author, null: false
    t.integer :rating, null: false
    t.text :body, null: false
    t.timestamps
  end

  create_table :orders, force: :cascade do |t|
    t.datetime :created_at, null: false
  end

  create_table :order_lines, force: :cascade do |t|
    t.references :order, null: false
    t.references :product, null: false
    t.integer :quantity, null: false
    t.integer :price_cents, null: false
  end
end
