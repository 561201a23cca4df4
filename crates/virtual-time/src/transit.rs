//! How far a clock may run when what others have told of theirs, and frames, are messages that take time to come.
//!
//! **Problem.** Guests of one machine read each other's next instants in memory that they share, and its order sees to it
//! that a frame is there before its sender's clock has gone on (`horizon.rs`). Between machines both are messages. They
//! come late, which does no harm by itself: an instant before which nothing happens in a guest stays one.
//!
//! **Why to mirror the instants is wrong.** L sends a frame to R and idles. K hears that L has nothing to come, and has not
//! heard of R since that idled too, with nothing to come, because the frame is still on its way. So K believes that nothing
//! can ever reach it and runs on, and what R answers arrives in K's past. That connections keep their order does not help:
//! there are two of them.
//!
//! **The rule.** What is known has to be of one *consistent* state, in the sense of Chandy and Lamport (ACM TOCS 3(1), 1985):
//! whose receipt is known, whose sending is known too. And frames on their way belong to that state: a frame that is known
//! to have been sent, and not to have been received, counts as an instant of its receiver ([`lowered`]). From such a state
//! the rule of the horizon gives a bound that holds for ever, however old the state is: whatever happens later anywhere
//! follows from something in it.
//!
//! **One order of all.** Machines tell their news to a hub: frames, then the words of their guests, then how many frames they
//! have received. Connections keep their order, the hub takes one message after the other, and passes on to each
//! machine the frames to it and then the words of all others, lowered by what is on its way to them. So what the
//! hub knows at any moment is a consistent state, and so is what a machine knows: its own guests as they are now, the
//! others as the hub told them last, and, what the hub cannot know yet, the frames of its own that it had not told of by
//! then, by which it lowers the others itself. Which these are it is told with the words, also where these are the same as
//! before: else it would lower a receiver by a frame for ever that this has long taken, and wait for it.
//!
//! **Only on demand.** A machine that told every step of its guests would do nothing else. It has to tell them when one of
//! another machine waits that these could let go on ([`frees`]): what was told of them is in its way, and what they have come
//! to is not. And it has to tell that one of its own waits which somebody elsewhere is in the way of. That is enough for
//! somebody to go on always: of all who wait, the one with the least instant has told what it waits for, and nobody who is
//! in its way is so in truth. When all idle, that is one exchange, however far they jump.
//!
//! The tests (tests/machines.rs) walk through every order in which guests, machines and the hub of small systems can act, and
//! find what the mirror does wrong.

use crate::{VirtualDuration, VirtualInstant};

/// The next instant of a guest, from what it told and the arrivals of frames on their way to it.
#[must_use]
pub fn lowered(told: VirtualInstant, arrivals: impl Iterator<Item = VirtualInstant>) -> VirtualInstant {
    arrivals.fold(told, VirtualInstant::min)
}

/// Whether a guest whose next instant is `next`, at that distance, keeps another from going on to `wanted`.
#[must_use]
pub fn is_in_the_way(next: VirtualInstant, distance: VirtualDuration, wanted: VirtualInstant) -> bool {
    next.plus(distance) <= wanted
}

/// Whether to tell of some guests lets another go on to `wanted`, as far as it depends on them: what was told of them is in
/// its way, what they have come to is not.
///
/// Of each guest: what was told, what it has come to, and its distance.
#[must_use]
pub fn frees(
    guests: impl Iterator<Item = (VirtualInstant, VirtualInstant, VirtualDuration)>,
    wanted: VirtualInstant,
) -> bool {
    let mut told_in_the_way = false;
    for (told, next, distance) in guests {
        if is_in_the_way(next, distance, wanted) {
            return false;
        }
        told_in_the_way |= is_in_the_way(told, distance, wanted);
    }
    told_in_the_way
}
