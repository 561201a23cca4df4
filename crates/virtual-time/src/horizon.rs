//! How far one of many clocks may run while the others are behind it.
//!
//! **Problem.** Guests compute at the same time, each at its own pace, and send each other frames that take a delay of
//! virtual time. A frame that arrives in its receiver's past would be a result that no network gives. So how far may a
//! guest run, when all that is known of the others is an instant for each before which nothing happens in it?
//!
//! **Why the obvious fails.** To run in steps of the shortest delay, all together, makes everybody wait for the slowest at
//! every step, and the steps are those of the shortest link wherever it is. To ask neighbours alone stands still, or
//! creeps, when two idle guests wait for each other (the null messages of Chandy and Misra, IEEE TSE 5(5), 1979).
//!
//! **The rule.** Nothing happens in guest j before next(j): where it is, while it runs; its next timer or arrival, while it
//! idles. What it does then reaches guest i no sooner than dist(j, i) later, the shortest sum of delays over one wire or
//! more; its own doings come back to i itself after the shortest way there and back. So
//!
//! ```text
//! horizon(i) = min over all j of next(j) + dist(j, i)
//! ```
//!
//! and i may run up to its horizon, but not reach it: then all that ever arrives at an instant is known before the instant
//! comes, and what a guest does at it depends on no race. Every delay is above zero, so the guest whose next(·) is least
//! is below its horizon, and somebody may always go on. When all idle, it is to the least next(·) of all that they jump.
//!
//! **Woken from outside.** A guest that idles has told of itself that nothing happens in it before its next event, and others
//! run on that. If the host then has something for it, it goes on from the first instant from which nothing that it sends
//! arrives below another's horizon ([`wakes_at`]), and tells so *in the same step*. If it looked first and told later,
//! others would be let run on in between, by what it had told before, and all that it sent from then on would be late.
//! What it does from there on may come back to it sooner than what it had told before let it believe: with that instant it takes its
//! own horizon back ([`horizon_of_woken`]), or it would run past the answers to what it sends.
//! Of guests that it knows by messages alone that instant may be beyond what they still send (`transit.rs`). So it waits until
//! its horizon is past it, and goes on from what arrives first.
//!
//! **Held.** Guests that idle let each other come far ahead. Held there, none of them goes that far, but who is woken then would
//! have to: it cannot send to where another's horizon is. So a guest that stands takes its horizon back to where it would be
//! if all stood where it does ([`horizon_of_held`]); none needs more of it before it is released. Its next(·) is where it stands, as
//! it may be woken there, and so who is released before it comes no further than that lets it.
//!
//! **At work where it is to stand.** On the event drive what is at work at an instant goes on beyond it, such as a program that
//! starts. A guest of which that is so stands where its work has brought it, whatever instant it was told, and its horizon is
//! what it would be if all stood there. If it stayed where it was told to, others would let it go on, further than the
//! horizon that it is left with: it would neither run nor wait, and never look for the order that lets it go.
//!
//! The tests (tests/guests.rs) walk through every order in which small systems can run, and find what happens to a guest that
//! tells later, to those that are held and keep their horizons, and to those that work on and stay behind.

use crate::{VirtualDuration, VirtualInstant};

/// The horizon of a guest, from the next instant of every guest and its distance from there; never, where nothing can
/// reach it.
#[must_use]
pub fn horizon(all: impl Iterator<Item = (VirtualInstant, VirtualDuration)>) -> VirtualInstant {
    all.map(|(next, distance)| next.plus(distance)).min().unwrap_or(VirtualInstant::NEVER)
}

/// The most that the horizon may be of a guest that stands at `stand` until the host orders something, whatever comes: nobody
/// who stands there, too, can reach it sooner. Never, where it does not stand, or nobody can reach it.
#[must_use]
pub fn horizon_of_held(stand: VirtualInstant, nearest: VirtualDuration) -> VirtualInstant {
    stand.plus(nearest)
}

/// The most that the horizon may be of a guest that is woken from outside and goes on from `wakes_at`: what it does comes back to
/// it after the shortest way there and back. What others may do has not changed by that.
#[must_use]
pub fn horizon_of_woken(wakes_at: VirtualInstant, round: VirtualDuration) -> VirtualInstant {
    wakes_at.plus(round)
}

/// The instant from which a guest goes on that has told of itself that nothing happens in it before `next`, and that
/// something outside of virtual time wakes when its clock is at `now`.
///
/// Of each other guest: its horizon, the distance to it, and whether that horizon is only a bound, which may be beyond what
/// is next here; so is one that is never, which was given when nothing could happen here.
#[must_use]
pub fn wakes_at(
    now: VirtualInstant,
    next: VirtualInstant,
    others: impl Iterator<Item = (VirtualInstant, VirtualDuration, bool)>,
) -> VirtualInstant {
    let earliest = others.map(|(horizon, distance, is_bound)| {
        let at = VirtualInstant::from_ns(horizon.as_ns().saturating_sub(distance.as_ns()));
        if is_bound || horizon == VirtualInstant::NEVER {
            at.min(next)
        } else {
            at
        }
    });
    earliest.fold(now, VirtualInstant::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(ns: u64) -> VirtualInstant {
        VirtualInstant::from_ns(ns)
    }

    #[test]
    fn nobody_in_reach_means_no_horizon() {
        assert_eq!(horizon(core::iter::empty()), VirtualInstant::NEVER);
        let unreachable = [(instant(5), VirtualDuration::from_ns(u64::MAX))];
        assert_eq!(horizon(unreachable.into_iter()), VirtualInstant::NEVER);
    }

    #[test]
    fn the_nearest_of_all_that_can_be_felt_is_the_horizon() {
        let all = [(instant(100), VirtualDuration::from_ns(1)), (instant(5), VirtualDuration::from_ns(20))];
        assert_eq!(horizon(all.into_iter()), instant(25));
    }
}
