//! Interruptible sorting, which the standard library does not have.

use crate::interrupt::{Interrupt, Interrupted};

/// The largest number of items sorted without a check.
const FEW: usize = 1 << 16;

/// Sorts by a number, in linear time; equal items keep their order.
pub fn sort_by_number<T: Copy>(
    items: &mut [T],
    number: impl Fn(&T) -> u32,
    interrupt: &Interrupt,
) -> Result<(), Interrupted> {
    if items.len() <= FEW {
        items.sort_by_key(number);
        return Ok(());
    }
    // A radix sort, starting with the lower half of the number.
    for shift in [0, 16] {
        let digit = |item: &T| (number(item) >> shift) as usize & 0xffff;
        let mut starts = vec![0; FEW + 1];
        for (step, item) in items.iter().enumerate() {
            interrupt.at(step)?;
            starts[digit(item) + 1] += 1;
        }
        (1..starts.len()).for_each(|digit| starts[digit] += starts[digit - 1]);
        for (step, item) in items.to_vec().iter().enumerate() {
            interrupt.at(step)?;
            let start = &mut starts[digit(item)];
            items[*start] = *item;
            *start += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_items_are_sorted_like_few() {
        for count in [1000_u32, 200_000] {
            // Each number twice; some differ in one half only.
            let numbers = (0..count).map(|step| (step / 2).wrapping_mul(0x9e37_79b9) & 0x00ff_f0ff);
            let mut items: Vec<(u32, u32)> = numbers.zip(0..).collect();
            let mut expected = items.clone();
            expected.sort();
            sort_by_number(&mut items, |&(number, _)| number, &Interrupt::default()).unwrap();
            assert!(items == expected);
        }
    }

    #[test]
    fn it_can_be_interrupted() {
        let interrupt = Interrupt::default();
        interrupt.strike();
        assert_eq!(sort_by_number(&mut vec![1; FEW + 1], |&number| number, &interrupt), Err(Interrupted));
    }
}
