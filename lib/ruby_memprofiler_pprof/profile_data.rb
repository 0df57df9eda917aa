# frozen_string_literal: true

module MemprofilerPprof
  # What a flush returns. Defined by the native extension.
  #
  # @!method pprof_data
  #   @return [String] the profile as gzipped pprof, binary
  # @!method heap_samples_count
  #   @return [Integer] live samples in the profile
  # @!method allocation_samples_count
  #   @return [Integer] samples still alive of those allocated since the last flush
  # @!method dropped_samples_heap_bufsize
  #   @return [Integer] live samples dropped since the last flush because there were more than `max_heap_samples`
  # @!method flush_duration_nsecs
  #   @return [Integer] nanoseconds from the beginning of the flush to its end
  # @!method pprof_serialization_nsecs
  #   @return [Integer] nanoseconds for encoding and compressing
  # @!method sample_add_nsecs
  #   @return [Integer] nanoseconds for turning live samples into those of the profile
  # @!method sample_add_without_gvl_nsecs
  #   @return [Integer] the part of {#sample_add_nsecs} in which other threads could run
  # @!method gvl_proactive_yield_count
  #   @return [Integer] how often other threads were let run
  # @!method gvl_proactive_check_yield_count
  #   @return [Integer] how often it was checked whether they should
  # @!method longest_gvl_hold_nsecs
  #   @return [Integer] the longest time in nanoseconds for which no other thread could run
  class ProfileData
    # Writes the profile to a file, in place of one that is there. {FileFlusher} is more careful.
    #
    # @param path [String, #to_path]
    # @return [Integer] the number of bytes written
    # @raise [SystemCallError] if the file cannot be written
    def write(path)
      File.binwrite(path, pprof_data, perm: 0o600)
    end

    # @return [String] for people
    def to_s
      "#<#{self.class} #{heap_samples_count} live samples, #{pprof_data.bytesize} bytes, " \
        "flushed in #{(flush_duration_nsecs / 1e6).round(1)} ms>"
    end
    alias inspect to_s
  end
end
