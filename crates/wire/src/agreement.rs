//! How guests agree how far each may run.
//!
//! Each member tells `next_ns`, an instant before which nothing happens in it and it sends nothing; the rule of the horizon
//! (virtual-time/src/horizon.rs) is over all of these. Who tells more of itself does so under the run's one lock, learns
//! its own horizon from it, and lets run whoever waits and is below the horizon now. So nobody has to look for others, and
//! whoever goes to sleep has left nobody behind that could go on.
//!
//! **Frames** go past the lock: a sender puts a frame into the ring and then lowers the receiver's `next_ns` to the arrival
//! if that is earlier. Two orders make this right:
//!
//! - A sender tells nothing beyond the instant of sending before it has done both. So whoever sees the later word, under
//!   the lock, sees the lowered one too; before, the sender's earlier word keeps the horizon down.
//! - A receiver that is about to idle first stores its `next_ns` and then looks into its rings. Either it finds the frame
//!   there, or the sender lowers the word after it was stored.
//!
//! A frame that a receiver knows of and reads only at its next event counts for neither: it is no instant of its own
//! ([`Guest::pass_reading`]). A sender that lowers the word for another such frame makes the others wait for longer than they
//! need, until the receiver tells its instant again.
//!
//! **Strides.** A guest that stands at its horizon could go on as soon as that has moved by a nanosecond, and would then be
//! woken at every step of the slowest, however far it is from there. So it waits until it may go on by half the distance of
//! the nearest guest. The one whose word is least of all may go on by a whole one at least, so somebody always can.
//!
//! **Going back.** A guest that idles has told that nothing happens in it before its next timer, and others have run on
//! that. If the host then wakes it, it may not go on from where it fell asleep: what it sent would arrive in the past of
//! others. It goes on from the first instant from which nothing can, which is never beyond its own next event, and tells
//! that under the lock under which it has looked (`virtual_time::wakes_at`). If only the host's clock kept it from going on, it
//! takes its own horizon back, too, as it may be answered sooner (`virtual_time::horizon_of_woken`).
//!
//! **Standing.** Others may have let a guest come far beyond where the host then holds it. While it stands its horizon, as others
//! see it, is what it would be if all stood there ([`Guest::stands`]), so that one who is woken need not go beyond.
//!
//! **Away.** A guest whose kernel is to be another one has told the instant from which that one goes on. Who is gone tells
//! nothing more, so the others come no further than this lets them, however long it takes; what they send meanwhile waits in
//! the rings, as nothing that arrives before that instant can still be sent.

use core::sync::atomic::{fence, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use virtual_time::{VirtualDuration, VirtualInstant};

use crate::futex;
use crate::ring::{add, Full};
use crate::{Member, Way, Wire, NEVER};

pub(crate) const RUNNING: u64 = 0;
pub(crate) const WAITING: u64 = 1;
pub(crate) const STOPPED: u64 = 2;
pub(crate) const LEFT: u64 = 3;
pub(crate) const AWAY: u64 = 4;

/// Ways to one guest, at most.
const WAYS_IN_MAX: usize = 512;

/// A guest's own view of the wire. One thread uses it, and not within itself.
pub struct Guest {
    wire: Wire,
    number: usize,
    ways_in: [u16; WAYS_IN_MAX],
    ways_in_count: usize,
    /// Half the distance to the nearest other guest, nanoseconds.
    step_ns: u64,
}

/// What a guest asks for when it tells where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// It goes on running whatever the answer is: it stops at its horizon by itself.
    Run,
    /// Nothing happens in it before its next instant, and it waits until it may run from there.
    Pass,
    /// It has to leave the instant in the middle of which it is, and waits until it may.
    GoOn,
}

impl Guest {
    /// Guest `number` of the wire; `None` if there is no such guest, or more ways lead to it than can be.
    #[must_use]
    pub fn new(wire: Wire, number: usize) -> Option<Self> {
        if number >= wire.guests() || wire.ways() > usize::from(u16::MAX) {
            return None;
        }
        let (mut ways_in, mut ways_in_count) = ([0; WAYS_IN_MAX], 0);
        for way in (0..wire.ways()).filter(|&way| wire.way(way).receiver.load(Relaxed) == number as u64) {
            *ways_in.get_mut(ways_in_count)? = way as u16;
            ways_in_count += 1;
        }
        let others = || (0..wire.guests()).filter(|&other| other != number);
        let half_ns = |nearest_ns: Option<u64>| nearest_ns.filter(|&ns| ns != NEVER).map(|ns| (ns / 2).max(1));
        let step_ns = half_ns(others().map(|other| wire.distance_ns(number, other)).min()).unwrap_or(NEVER);
        let stride_ns = half_ns(others().map(|other| wire.distance_ns(other, number)).min()).unwrap_or(1);
        wire.member(number).stride_ns.store(stride_ns, Relaxed);
        Some(Self { wire, number, ways_in, ways_in_count, step_ns })
    }

    /// The memory.
    #[must_use]
    pub const fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// How long it may run until it should tell the others again where it is, so that they run beside it instead of
    /// waiting until it stops at its own horizon; nanoseconds.
    #[must_use]
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// The ways that lead to it.
    pub fn ways_in(&self) -> impl Iterator<Item = usize> + '_ {
        self.ways_in[..self.ways_in_count].iter().map(|&way| usize::from(way))
    }

    /// When the first of all frames under way to it arrives; `NEVER` if there is none.
    #[must_use]
    pub fn first_arrival_ns(&self) -> u64 {
        self.first_arrival_on(|_| true)
    }

    /// The same of the ways that are `read`.
    fn first_arrival_on(&self, read: impl Fn(usize) -> bool) -> u64 {
        let ways = self.ways_in().filter(|&way| read(way));
        ways.filter_map(|way| self.wire.first_arrival_ns(self.wire.way(way))).min().unwrap_or(NEVER)
    }

    /// Tells the others that it runs and is at `now_ns`; returns its horizon.
    #[allow(clippy::must_use_candidate)] // most callers tell for the others' sake
    pub fn tell(&self, now_ns: u64) -> u64 {
        self.agree(now_ns, Wish::Run, |_| true)
    }

    /// Tells the others that nothing happens in it before `next_ns`, but for arrivals; true if that is below its horizon,
    /// and it may run from there. Otherwise it [`waits`](Self::sleep) until it may.
    #[must_use]
    pub fn pass(&self, next_ns: u64) -> bool {
        self.pass_reading(next_ns, |_| true)
    }

    /// The same of one that does not read by itself what arrives on ways that are not `read`: it knows that there is
    /// something, and leaves it there until `next_ns`. Who told of such an arrival would keep the others at it, and itself.
    #[must_use]
    pub fn pass_reading(&self, next_ns: u64, read: impl Fn(usize) -> bool) -> bool {
        let horizon_ns = self.agree(next_ns, Wish::Pass, read);
        horizon_ns > self.own().next_ns.load(Relaxed)
    }

    /// Tells the others that it is at `now_ns`, at which it has come to its horizon, and not done there; true if it may go
    /// on, and by so much that others are not asked again at once. Otherwise it [`waits`](Self::sleep) until it may.
    #[must_use]
    pub fn go_on(&self, now_ns: u64) -> bool {
        self.agree(now_ns, Wish::GoOn, |_| true) > now_ns.saturating_add(self.own().stride_ns.load(Relaxed))
    }

    /// Whether what it has waited for is so. Once true, it is running.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.own().state.load(SeqCst) == RUNNING
    }

    /// Its horizon, as last agreed.
    #[must_use]
    pub fn horizon_ns(&self) -> u64 {
        self.own().horizon_ns.load(Relaxed)
    }

    /// Something that is not of virtual time wakes it at `now_ns`: tells the others from which instant it goes on, and
    /// returns that. Whether it may is to be asked ([`go_on`](Self::go_on)).
    #[must_use]
    pub fn go_back(&self, now_ns: u64) -> u64 {
        futex::locked(&self.wire.header().lock, || {
            let instant = VirtualInstant::from_ns;
            let receives = |other: usize| self.wire.member(other).state.load(SeqCst) != LEFT;
            let others = (0..self.wire.guests()).filter(|&other| other != self.number && receives(other));
            let others = others.map(|other| {
                let horizon_ns = self.wire.member(other).horizon_ns.load(Relaxed);
                let distance = VirtualDuration::from_ns(self.wire.distance_ns(self.number, other));
                (instant(horizon_ns), distance, !self.wire.is_here(other))
            });
            let wakes_at = virtual_time::wakes_at(instant(now_ns), instant(self.wire.next_ns(self.number)), others);
            let round = VirtualDuration::from_ns(self.wire.distance_ns(self.number, self.number));
            self.own().next_ns.store(wakes_at.as_ns(), SeqCst);
            self.own().horizon_ns.fetch_min(virtual_time::horizon_of_woken(wakes_at, round).as_ns(), SeqCst);
            wakes_at.as_ns()
        })
    }

    /// It stands at `stand_ns` from now on, until the host orders something; never: it goes on.
    pub fn stands(&self, stand_ns: u64) {
        futex::locked(&self.wire.header().lock, || {
            self.own().stand_ns.store(stand_ns, SeqCst);
            self.wire.let_come(self.number);
            // What was told of it elsewhere is more than is so now.
            if stand_ns < self.own().told_ns.load(SeqCst) {
                self.wire.bring_news();
            }
            self.let_run();
            self.wire.look_for_news();
        });
    }

    /// Leaves the run: nothing that happens in it is felt by others any more, and it receives nothing.
    pub fn leave(&self) {
        futex::locked(&self.wire.header().lock, || {
            self.own().state.store(LEFT, SeqCst);
            self.own().next_ns.store(NEVER, SeqCst);
            self.let_run();
            self.wire.look_for_news();
        });
    }

    /// Its kernel ends here, and another one goes on from `now_ns`: this one takes no part in the run any more.
    pub fn hand_over(&self, now_ns: u64) {
        futex::locked(&self.wire.header().lock, || {
            self.own().next_ns.store(now_ns, SeqCst);
            self.own().state.store(AWAY, SeqCst);
            self.let_run();
            self.wire.look_for_news();
        });
    }

    /// Whether it takes part in the run: all have their virtual 0, and it is not away.
    #[must_use]
    pub fn takes_part(&self) -> bool {
        self.wire.header().begun.load(Relaxed) != 0 && self.own().state.load(SeqCst) != AWAY
    }

    /// Nothing happens in it before this instant, as it has told last.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.own().next_ns.load(SeqCst)
    }

    /// What to hand to [`sleep`](Self::sleep), taken before the last look at what might make sleep wrong.
    #[must_use]
    pub fn watch(&self) -> u64 {
        self.own().wake.load(SeqCst)
    }

    /// Sleeps unless it was woken since `watched`, until it is woken, by a signal handler too that calls
    /// [`wake`](Self::wake), or until `timeout_ns` of the host is over.
    pub fn sleep(&self, watched: u64, timeout_ns: Option<u64>) {
        futex::wait(&self.own().wake, watched, timeout_ns);
    }

    /// Ends its own sleep; for signal handlers.
    pub fn wake(&self) {
        self.own().wake.fetch_add(1, SeqCst);
    }

    /// Puts a frame on its way that is sent at `now_ns`.
    ///
    /// # Errors
    /// The ring is full.
    ///
    /// # Safety
    /// The parts must be readable, and the way be one on which this guest sends.
    pub unsafe fn send(&self, way: &Way, now_ns: u64, parts: &[libc::iovec]) -> Result<(), Full> {
        let receiver = self.wire.member(way.receiver.load(Relaxed) as usize);
        let has_left = |member: &Member| member.state.load(SeqCst) == LEFT;
        if !self.takes_part() || has_left(receiver) || has_left(self.own()) {
            add(&way.frames_not_sent, 1);
            return Ok(());
        }
        let arrival_ns = now_ns + way.delay_ns.load(Relaxed);
        let is_here = receiver.home.load(Relaxed) == self.own().home.load(Relaxed);
        // Elsewhere it is looked at where the horizon is.
        if is_here && arrival_ns < receiver.horizon_ns.load(SeqCst) {
            add(&way.frames_late, 1);
        }
        // SAFETY: as the caller says.
        unsafe { self.wire.send(way, arrival_ns, parts)? };
        receiver.next_ns.fetch_min(arrival_ns, SeqCst);
        if !is_here {
            receiver.asked_ns.fetch_min(arrival_ns, SeqCst);
            self.own().has_more_to_tell(now_ns);
        }
        Ok(())
    }

    fn own(&self) -> &Member {
        self.wire.member(self.number)
    }

    fn agree(&self, next_ns: u64, wish: Wish, read: impl Fn(usize) -> bool) -> u64 {
        let own = self.own();
        add(&own.agreements, 1);
        futex::locked(&self.wire.header().lock, || {
            own.next_ns.store(next_ns, SeqCst);
            // What is at work where it comes to stand goes on, on the event drive: it stands where that has brought it.
            if (own.stand_ns.load(SeqCst)..NEVER).contains(&next_ns) {
                own.stand_ns.store(next_ns, SeqCst);
            }
            fence(SeqCst);
            if wish == Wish::Pass {
                own.next_ns.fetch_min(self.first_arrival_on(read), SeqCst);
            }
            let horizon_ns = self.wire.let_come(self.number);
            let (past_ns, waiting) = match wish {
                Wish::Run => (0, RUNNING),
                Wish::Pass => (0, WAITING),
                Wish::GoOn => (own.stride_ns.load(Relaxed), STOPPED),
            };
            let waits = waiting != RUNNING && horizon_ns <= own.next_ns.load(SeqCst).saturating_add(past_ns);
            own.state.store(if waits { waiting } else { RUNNING }, SeqCst);
            add(&own.windows, u64::from(!waits));
            add(&own.waits, u64::from(waits));
            self.let_run();
            self.wire.look_for_news();
            horizon_ns
        })
    }

    /// Lets run all that wait and may; under the lock.
    fn let_run(&self) {
        add(&self.own().wakes, self.wire.let_run(self.number));
    }
}

pub(crate) fn rouse(word: &AtomicU64) {
    word.fetch_add(1, SeqCst);
    futex::wake(word);
}

impl Wire {
    /// Lets run all guests of this machine but one that wait and may; how many that are. Under the lock.
    pub(crate) fn let_run(&self, but: usize) -> u64 {
        let mut wakes = 0;
        for guest in (0..self.guests()).filter(|&guest| guest != but && self.is_here(guest)) {
            let member = self.member(guest);
            if self.may_go_on(guest) {
                self.let_come(guest);
                add(&member.windows, 1);
                member.state.store(RUNNING, SeqCst);
                rouse(&member.wake);
                wakes += 1;
            }
        }
        wakes
    }

    /// Gives a guest the horizon that others let it have, if it had none that is later; returns that. Others see no more of it
    /// than it needs while it stands. Under the lock.
    fn let_come(&self, guest: usize) -> u64 {
        let member = self.member(guest);
        let horizon_ns = self.horizon_ns(guest).max(member.horizon_ns.load(Relaxed));
        let most_ns = match member.stand_ns.load(Relaxed) {
            NEVER => NEVER,
            stand_ns => {
                let others = (0..self.guests()).filter(|&other| other != guest);
                let nearest_ns = others.map(|other| self.distance_ns(other, guest)).min().unwrap_or(NEVER);
                let stand = VirtualInstant::from_ns(stand_ns);
                virtual_time::horizon_of_held(stand, VirtualDuration::from_ns(nearest_ns)).as_ns()
            }
        };
        member.horizon_ns.store(horizon_ns.min(most_ns), SeqCst);
        horizon_ns
    }

    /// What a guest has told, as the rule of the horizon takes it: where it stands, it may be woken.
    pub(crate) fn next_ns(&self, guest: usize) -> u64 {
        let member = self.member(guest);
        if member.state.load(Relaxed) == LEFT {
            return NEVER;
        }
        member.next_ns.load(SeqCst).min(member.stand_ns.load(SeqCst))
    }

    fn horizon_ns(&self, guest: usize) -> u64 {
        let all = (0..self.guests()).map(|other| {
            let distance = VirtualDuration::from_ns(self.distance_ns(other, guest));
            (VirtualInstant::from_ns(self.next_ns(other)), distance)
        });
        virtual_time::horizon(all).as_ns()
    }

    /// Beyond which instant the horizon of a guest has to be for it to go on; `None` if it does not wait.
    pub(crate) fn wanted_ns(&self, guest: usize) -> Option<u64> {
        let member = self.member(guest);
        let past_ns = match member.state.load(Relaxed) {
            WAITING => 0,
            STOPPED => member.stride_ns.load(Relaxed),
            _ => return None,
        };
        Some(member.next_ns.load(SeqCst).saturating_add(past_ns))
    }

    /// Whether a guest waits, and its horizon is past what it waits for. Looks first at who was in the way the last time.
    fn may_go_on(&self, guest: usize) -> bool {
        let member = self.member(guest);
        let Some(wanted_ns) = self.wanted_ns(guest) else { return false };
        let is_in_the_way =
            |other: usize| self.next_ns(other).saturating_add(self.distance_ns(other, guest)) <= wanted_ns;
        let limiter = member.limiter.load(Relaxed) as usize;
        if limiter < self.guests() && is_in_the_way(limiter) {
            return false;
        }
        match (0..self.guests()).find(|&other| is_in_the_way(other)) {
            Some(limiter) => {
                member.limiter.store(limiter as u64, Relaxed);
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests;
