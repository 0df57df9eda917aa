# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"

module MemprofilerPprof
  # What a flush returns. Defined by the native extension.
  #
  # @!method pprof_data
  #   @return [String] the profile as gzipped pprof, binary
  # @!method time_nanos
  #   @return [Integer] when it was taken, in nanoseconds since 1970
  # @!method duration_nanos
  #   @return [Integer] the nanoseconds of the interval that its allocations are from; 0 if it is from {Collector#peek}
  # @!method sample_type_names
  #   @return [Symbol] what its values are called, `:ruby` or `:go`
  # @!method empty?
  #   @return [Boolean] whether there is nothing in it: neither something alive nor an allocation
  # @!method heap_samples_count
  #   @return [Integer] live samples in the profile
  # @!method allocation_samples_count
  #   @return [Integer] of the samples since the last flush, those still alive; in a profile of CPU time, all samples
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
  #   @return [Integer] how often the flush yielded to other threads
  # @!method gvl_proactive_check_yield_count
  #   @return [Integer] how often the flush checked whether to
  # @!method longest_gvl_hold_nsecs
  #   @return [Integer] the longest time in nanoseconds for which no other thread could run: between two offers of the
  #     GVL, garbage collections and what else the machine did included
  # @!method longest_gvl_hold_cpu_nsecs
  #   @return [Integer] the most CPU time in nanoseconds that the flushing thread used between two offers of the GVL,
  #     without that of garbage collections, if `GC.measure_total_time` is on, as it is by default
  class ProfileData
    # Writes the profile to a file that only its owner can read. Unlike {FileFlusher}, replaces an existing one.
    #
    # @param path [String, #to_path]
    # @return [Integer] the number of bytes written
    # @raise [SystemCallError] if the file cannot be written
    def write(path)
      AtomicFile.write(path, pprof_data)
      pprof_data.bytesize
    end

    # @return [Profile] its contents
    def profile
      Profile.load(pprof_data)
    end

    # @return [String] for people
    def to_s
      "#<#{self.class} #{heap_samples_count} live samples, #{pprof_data.bytesize} bytes, " \
        "flushed in #{(flush_duration_nsecs / 1e6).round(1)} ms>"
    end
    alias inspect to_s
  end
end
