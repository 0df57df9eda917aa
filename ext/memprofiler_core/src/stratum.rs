//! Which samples are added up.

use crate::window_group::WindowGroup;

/// Samples of one stack and class are added up by stratum, so that the error of their sum can be told from the sums:
/// what was taken in windows by group of windows, and the rest by order of magnitude of the objects' sizes.
///
/// Of n objects of b bytes, b²/n is the sum of the squares of their sizes if all are equal (see
/// [`Estimator::row`](crate::analysis::Estimator::row)). If one is at most twice another, at least 8/9 of it is left;
/// but of nine strings of 50 bytes and one of 5,000 it is an eighth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stratum {
    /// Not in windows: the binary logarithm of the sizes, rounded down; 0 where every object is sampled.
    Size(u8),
    /// In windows of that group.
    Window(WindowGroup),
}

impl Stratum {
    /// That of samples which are never apart.
    pub const ONLY: Self = Self::Size(0);

    /// That of a sample of `weight` objects of `size` bytes, taken in a window of that group, or in none.
    pub fn of(window: Option<WindowGroup>, weight: f64, size: usize) -> Self {
        match window {
            Some(group) => Self::Window(group),
            None if weight > 1.0 => Self::Size(size.max(1).ilog2() as u8),
            None => Self::ONLY,
        }
    }

    /// The group of the windows, if there were any.
    pub fn window(self) -> Option<WindowGroup> {
        match self {
            Self::Window(group) => Some(group),
            Self::Size(_) => None,
        }
    }

    /// The order of magnitude of the sizes, as in [`Row::magnitude`](crate::profile::Row::magnitude).
    pub fn magnitude(self) -> u32 {
        match self {
            Self::Size(magnitude) => magnitude.into(),
            Self::Window(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_apart_if_one_can_be_more_than_twice_the_other() {
        let of = |size| Stratum::of(None, 100.0, size);
        assert_eq!([0, 1, 40, 63, 64, usize::MAX].map(of), [0, 0, 5, 5, 6, 63].map(Stratum::Size));
    }

    #[test]
    fn sizes_do_not_matter_where_they_have_no_error() {
        assert_eq!([40, 4000].map(|size| Stratum::of(None, 1.0, size)), [Stratum::ONLY; 2]);
    }

    #[test]
    fn what_was_taken_in_windows_is_apart_by_their_group_only() {
        let group = WindowGroup::new(7);
        let of = |size| Stratum::of(Some(group), 100.0, size);
        assert_eq!([of(40), of(4000)], [Stratum::Window(group); 2]);
        assert_eq!((of(40).window(), of(40).magnitude()), (Some(group), 0));
    }
}
