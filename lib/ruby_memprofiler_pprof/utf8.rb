# frozen_string_literal: true

module MemprofilerPprof
  # Names of files, variables and so on, in which bytes are taken for UTF-8, as in profiles. In the locale C, Docker's
  # default, Ruby takes them for US-ASCII or binary, and raises where they meet UTF-8.
  # @api private
  module UTF8
    class << self
      # @param bytes [String]
      # @return [String] the same bytes; they may be no valid UTF-8
      def text(bytes)
        bytes.dup.force_encoding(Encoding::UTF_8)
      end

      # @param bytes [String] from elsewhere
      # @return [String] on one line, and without what a terminal would obey
      def printable(bytes)
        text(bytes).scrub.gsub(/[[:cntrl:]]/, "?")
      end

      # @param text [String]
      # @return [String] the same characters, if it is valid in its encoding, else the same bytes; what is no valid
      #   UTF-8 is replaced
      def encode(text)
        text.encode(Encoding::UTF_8).scrub
      rescue EncodingError
        self.text(text).scrub
      end

      # @return [String, nil] nil if it is gone: a deployment may have removed it while the process runs
      def current_directory
        text(Dir.pwd)
      rescue SystemCallError
        nil
      end
    end
  end
end
