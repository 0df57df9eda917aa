# frozen_string_literal: true

# Which products a word occurs in. Built once: the catalogue changes with a deploy.
class SearchIndex
  @building = Mutex.new

  class << self
    def search(query)
      query.downcase.scan(/\w+/).map { |word| index.fetch(word, []) }.reduce(:&) || []
    end

    private

    def index
      @index || @building.synchronize { @index ||= build }
    end

    def build
      Product.pluck(:id, :name, :description).each_with_object({}) do |(id, *texts), index|
        texts.join(" ").downcase.scan(/\w+/).uniq.each { |word| (index[word] ||= []) << id }
      end
    end
  end
end
