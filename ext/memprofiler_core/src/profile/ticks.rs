//! Profiles whose samples are ticks of a clock.

use super::headers::{set_ticks_left_out, ticks_left_out};
use super::{Header, Profile, ValueType, Weighting};
use std::sync::Arc;

impl Profile {
    /// The column that counts ticks, if the profile has them.
    pub fn tick_column(&self) -> Option<usize> {
        let header = self.header();
        let is_count = |each: &ValueType| &*each.name == "samples" && &*each.unit == "count";
        let column = header.sample_types.iter().position(is_count);
        column.filter(|_| matches!(Weighting::of(header), Weighting::Ticks))
    }

    /// How many ticks there were in all, also if this is a part of a profile; None if it has no ticks.
    pub fn all_ticks(&self) -> Option<u64> {
        let column = self.tick_column()?;
        let rows = (0..self.rows().len()).map(|row| self.values(row)[column].unsigned_abs());
        Some(rows.fold(ticks_left_out(self.header()), u64::saturating_add))
    }

    /// The header of a part of this profile, which says what it leaves out.
    pub(super) fn header_of_part(&self, part: &Self) -> Arc<Header> {
        let (Some(all), Some(ticks)) = (self.all_ticks(), part.all_ticks()) else { return Arc::clone(&self.header) };
        let mut header = (*self.header).clone();
        set_ticks_left_out(&mut header, ticks_left_out(&self.header).saturating_add(all.saturating_sub(ticks)));
        Arc::new(header)
    }
}
