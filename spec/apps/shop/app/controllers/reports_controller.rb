# frozen_string_literal: true

class ReportsController < ApplicationController
  def show
    @rows = Rails.cache.fetch("sales_report", expires_in: 5.seconds) { SalesReport.new.rows }

    respond_to do |format|
      format.html
      format.json { render json: @rows }
    end
  end
end
