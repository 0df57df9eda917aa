//! Sampling in windows: the hook is on only for a small, randomly placed part of the time.
//!
//! [`Schedule`] says when. Inside a window sampling is denser, so that each allocation has the same probability as
//! without windows: its window is open with a probability that [`Exposure`] knows from what earlier windows covered, and
//! [`Reservoir`](crate::reservoir::Reservoir) applies it to the samples of a window.
//!
//! Samples of one window are taken or missed together, so a formula for independent samples would promise too much.
//! Each window therefore belongs to one of [`WindowGroup::COUNT`](crate::window_group::WindowGroup::COUNT) groups at random, and the spread among the groups'
//! sums gives the variance: `G / (G - 1) * sum((T_g - T / G)²)` for a total T whose share from group g is T_g.

mod cost;
mod exposure;
mod schedule;

pub use exposure::{Exposure, Segment};
pub use schedule::{Moment, Schedule};
