//! How the samples of a profile were taken.

use super::Header;
use crate::window_group::WindowGroup;

/// What one sampled object stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weighting {
    /// The profile does not say.
    Unknown,
    /// At most this many objects: the comment `greatest_weight` in this gem's profiles.
    Each(f64),
    /// An object of y bytes is sampled with probability 1 - exp(-y / interval), as in Go's and V8's heap profiles.
    Bytes(f64),
    /// None: samples are ticks of a clock, and what they stand for is in another column, as in CPU profiles.
    Ticks,
}

/// Greater weights are no counts of objects, and their squares may be infinite.
const MOST: f64 = (1_u64 << 53) as f64;

impl Weighting {
    /// What the header of a profile says.
    pub fn of(header: &Header) -> Self {
        let weights = header.comments.iter().filter_map(|comment| comment.strip_prefix("greatest_weight="));
        let greatest = weights.filter_map(|weight| weight.parse().ok()).filter(|weight: &f64| *weight <= MOST);
        if let Some(weight) = greatest.reduce(f64::max) {
            return Self::Each(weight.max(1.0));
        }
        match &header.period_type {
            Some(period_type) if &*period_type.unit == "bytes" && header.period > 0 => {
                Self::Bytes(header.period as f64)
            }
            Some(period_type) if &*period_type.name == "cpu" && &*period_type.unit == "nanoseconds" => Self::Ticks,
            _ => Self::Unknown,
        }
    }
}

/// How the samples of a row were taken, and whether they were subtracted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scheme {
    /// What each of them stands for.
    pub weighting: Weighting,
    /// Whether it is part of the base of a difference.
    pub base: bool,
    /// The group of the windows that they were taken in, if they were taken in windows.
    pub window: Option<WindowGroup>,
}

impl Scheme {
    /// The scheme of a profile with that header, for samples that were not taken in windows.
    pub fn of(header: &Header) -> Self {
        Self { weighting: Weighting::of(header), base: false, window: None }
    }

    /// The same scheme in windows of that group.
    pub fn within(self, window: Option<WindowGroup>) -> Self {
        Self { window, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighting(comments: &[&str]) -> Weighting {
        Weighting::of(&Header {
            comments: comments.iter().map(|&comment| comment.into()).collect(),
            ..Header::default()
        })
    }

    #[test]
    fn the_greatest_weight_counts() {
        assert_eq!(weighting(&["greatest_weight=10", "greatest_weight=40.5", "pid=7"]), Weighting::Each(40.5));
        assert_eq!(weighting(&["greatest_weight=0.5"]), Weighting::Each(1.0));
    }

    #[test]
    fn what_cannot_be_a_weight_is_none() {
        for text in ["", "ten", "inf", "NaN", "1e308"] {
            assert_eq!(weighting(&[&format!("greatest_weight={text}")]), Weighting::Unknown, "{text}");
        }
    }
}
