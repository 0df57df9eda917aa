# frozen_string_literal: true

# Turnover by category and month over the last year.
class SalesReport
  Row = Struct.new(:category, :months) do
    def total_cents
      months.values.sum
    end
  end

  def rows
    lines.group_by { |line| line.product.category.name }
         .map { |category, sold| Row.new(category, by_month(sold)) }
         .sort_by { |row| -row.total_cents }
  end

  private

  def lines
    OrderLine.includes(:order, product: :category).joins(:order).where(orders: { created_at: 1.year.ago.. })
  end

  def by_month(lines)
    lines.group_by { |line| line.order.created_at.strftime("%Y-%m") }
         .transform_values { |sold| sold.sum { |line| line.quantity * line.price_cents } }
  end
end
