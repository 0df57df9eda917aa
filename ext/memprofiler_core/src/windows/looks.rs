//! At which objects the hook looks at the time.

/// One in this many, as a power of two.
const BITS: u32 = 2;

/// Whether the hook looks at the time when the object at `address` is allocated: at one in four, since to read even the
/// processor's counter takes as long as what else the hook does.
///
/// An object counts as in a window if the last one at which the hook has looked was. So it has the same probability as
/// that one, and all objects have the same, whatever the program does between the two: provided that it does not depend
/// on the windows at which ones the hook looks. An address does not depend on them. (Were they counted from when the
/// hook is switched on, what a program does first after a pause would be in too many windows, or in too few.)
#[inline]
pub fn is_looked_at(address: u64) -> bool {
    // Fibonacci hashing: in the order of their addresses, too, such objects are spread evenly.
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of slots in the VM's heap, up to those of Ruby 4.1.
    const SLOTS: [u64; 9] = [32, 40, 64, 80, 160, 256, 320, 512, 640];

    /// The places of those looked at among `count` objects in a row.
    fn places(slot: u64, first: u64, count: u64) -> Vec<u64> {
        (0..count).filter(|place| is_looked_at(first + place * slot)).collect()
    }

    #[test]
    fn it_is_one_object_in_four_whatever_their_size() {
        for slot in SLOTS {
            let count = places(slot, 0x7f12_3456_7000, 100_000).len();
            assert!((24_500..25_500).contains(&count), "{count} of slots of {slot} bytes");
        }
    }

    #[test]
    fn it_is_not_long_until_the_next() {
        for slot in SLOTS {
            let places = places(slot, 0x7f12_3456_7000, 100_000);
            let longest = places.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(longest.is_some_and(|longest| longest <= 10), "{longest:?} slots of {slot} bytes");
        }
    }
}
