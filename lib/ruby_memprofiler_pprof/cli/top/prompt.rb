# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # The line in which a filter is typed. It takes effect while it is being typed.
      class Prompt
        # @return [String] what was typed
        attr_reader :text

        def initialize
          @text = ""
          @before = nil
        end

        # @return [void]
        def open
          @before = @text
        end

        # @return [Boolean]
        def open?
          !@before.nil?
        end

        # @return [void]
        def clear
          @text = ""
        end

        # @param key [Symbol, String] ignored if it is the sequence of a key that has neither a name nor a character
        # @return [void]
        def press(key)
          case key
          when :enter then @before = nil
          when :escape
            @text = @before
            @before = nil
          when :backspace then @text = @text.chop
          when String then @text += key unless key.match?(/[[:cntrl:]]/)
          end
        end

        # What is not a valid regular expression, perhaps because it is still being typed, is taken literally.
        #
        # @return [Regexp, nil] nil if there is no filter
        def pattern
          Regexp.new(@text, Regexp::IGNORECASE) unless @text.empty?
        rescue RegexpError
          Regexp.new(Regexp.escape(@text), Regexp::IGNORECASE)
        end

        # @return [String, nil] what to show of it, while it is open
        def line
          "Filter: #{@text}_  (Enter: keep, Esc: as before)" if open?
        end
      end
    end
  end
end
