# frozen_string_literal: true

random = Random.new(2022)
pick = ->(*words) { words[random.rand(words.size)] }
now = Time.current

nouns = %w[Lamp Chair Desk Kettle Bicycle Tent Guitar Camera Clock Backpack Blender Rug]
adjectives = %w[Blue Folding Quiet Oak Light Sturdy Compact Northern Classic Travel Woven Copper]
materials = %w[steel oak wool copper bamboo cotton glass cork linen granite]
properties = %w[Width Height Depth Weight Material Colour Warranty Assembly Packaging Origin Care Energy Noise Power
                Capacity Certificate]
sentence = lambda do |length|
  Array.new(length) { pick[*adjectives, *nouns, *materials].downcase }.join(" ").capitalize << "."
end

Category.insert_all!(nouns.map { |noun| { name: noun.pluralize } })

Product.insert_all!(Category.pluck(:id, :name).flat_map do |category_id, category|
  Array.new(50) do |i|
    { category_id: category_id, name: "#{pick[*adjectives]} #{pick[*materials]} #{category.singularize.downcase} #{i}",
      description: Array.new(5) { sentence[12] }.join(" "), price_cents: random.rand(500..90_000),
      specification: properties.to_h { |property| [property, "#{random.rand(1..400)} #{pick[*materials]}"] },
      stock: random.rand(100), created_at: now, updated_at: now }
  end
end)

prices = Product.pluck(:id, :price_cents)

Review.insert_all!(prices.flat_map do |product_id, _|
  Array.new(random.rand(2..5)) do
    { product_id: product_id, author: "#{pick[*nouns]}fan", rating: random.rand(1..5), body: sentence[30],
      created_at: now, updated_at: now }
  end
end)

Order.insert_all!(Array.new(300) { { created_at: now - random.rand(365).days } })

OrderLine.insert_all!(Order.ids.flat_map do |order_id|
  prices.sample(4, random: random).map do |product_id, price_cents|
    { order_id: order_id, product_id: product_id, quantity: random.rand(1..3), price_cents: price_cents }
  end
end)
