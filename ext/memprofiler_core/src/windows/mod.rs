//! Sampling in windows: the hook is on only for a small, randomly placed part of the time.
//!
//! [`Schedule`] says when. Inside a window sampling is denser, so that each allocation has about the same probability
//! as without windows, unless that takes too much time ([`Budget`]). [`Exposure`] knows from earlier windows how much
//! of the time they cover, and how much of that the hook takes; [`Reservoir`](crate::reservoir::Reservoir) applies it.
//!
//! Samples of one window are taken or missed together, so a formula for independent samples would promise too much.
//! Each window therefore belongs to one of 16 groups at random (see [`window_group`](crate::window_group)), and the
//! spread among the groups' sums shows how certain a total is.

mod anticipation;
mod budget;
mod calibration;
mod cost;
mod deadline;
mod exposure;
mod gvl_clock;
mod looks;
mod openings;
mod pace;
mod progress;
mod schedule;

pub use anticipation::Anticipation;
pub use budget::Budget;
pub(crate) use cost::MOST_TAKEN;
pub use deadline::Deadline;
pub use exposure::{Exposure, Interval, Segment};
pub use gvl_clock::{Clocks, GvlClock};
pub use looks::is_looked_at;
pub use openings::{Opening, Openings};
pub use pace::Pace;
pub use progress::Progress;
pub use schedule::{Moment, Schedule, mix};
