//! Guests of other machines, in the memory of this one.
//!
//! Each machine lays out the memory for all guests and all ways of a run. What concerns guests elsewhere is kept up by one
//! process of the machine, which exchanges messages with the others ([`Machine`]; crates/relay): it takes out of
//! rings what is sent to them, puts into rings what they send, and writes into their words what was told of them. So a
//! guest elsewhere is to those here as any other, and `virtual-time/src/transit.rs` says why that is right.
//!
//! **Words of guests elsewhere** are stored as a guest stores its own before it idles: first the word, then a look into the
//! rings to it, and at what was taken out of them and the word does not count yet. So it is never above the arrival of a
//! frame on its way.
//!
//! **When to tell** is decided by guests, under the lock, whenever one tells of itself ([`Wire::look_for_news`]).
//!
//! **Going back.** A guest that idles for ever and is woken by the host goes on from where none can have run past it
//! (`agreement.rs`). If others were told *never* of it, that would be nowhere. So they are told no more than somewhat
//! beyond what anybody asks for ([`SLACK_NS`]). And nobody elsewhere is beyond what was told of here lets them be: that is
//! the bound that is noted as their horizon.

use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

use virtual_time::{frees, is_in_the_way, VirtualDuration, VirtualInstant};

use crate::agreement::{rouse, LEFT, RUNNING};
use crate::futex;
use crate::ring::{add, Full};
use crate::{Member, Received, Way, Wire, NEVER};

/// How much more than what is asked for is told of a guest in which nothing happens for long, nanoseconds. A guest that is
/// woken from outside may go on that much later than it could.
const SLACK_NS: u64 = 100_000_000;

/// What machines tell each other of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Nothing happens in it before this instant.
    pub next_ns: u64,
    /// It waits until others let it go on beyond this instant; never, where it does not, or for nothing.
    pub asked_ns: u64,
    /// As in `wire.def`.
    pub state: u64,
}

impl Word {
    /// Of a guest of which nothing was told yet.
    pub const FIRST: Self = Self { next_ns: 0, asked_ns: NEVER, state: RUNNING };

    /// As it is while a frame is on its way to the guest.
    #[must_use]
    pub fn lowered(self, arrival_ns: u64) -> Self {
        Self { next_ns: self.next_ns.min(arrival_ns), asked_ns: self.asked_ns.min(arrival_ns), ..self }
    }
}

impl Member {
    /// What was told of it elsewhere is not all any more, as something of it happens at `now_ns`.
    pub(crate) fn has_more_to_tell(&self, now_ns: u64) {
        self.told_ns.fetch_min(now_ns, SeqCst);
        self.asked_state.store(RUNNING, SeqCst);
    }
}

impl Wire {
    pub(crate) fn is_here(&self, guest: usize) -> bool {
        guest < self.guests() && self.member(guest).home.load(Relaxed) == self.header().home.load(Relaxed)
    }

    fn here(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.guests()).filter(|&guest| self.is_here(guest))
    }

    fn elsewhere(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.guests()).filter(|&guest| !self.is_here(guest))
    }

    fn distance(&self, from: usize, to: usize) -> VirtualDuration {
        VirtualDuration::from_ns(self.distance_ns(from, to))
    }

    /// Wakes who carries messages if there is something to tell; under the lock.
    pub(crate) fn look_for_news(&self) {
        let header = self.header();
        if header.machines.load(Relaxed) > 1 && header.news_due.load(Relaxed) == 0 && self.has_news() {
            self.bring_news();
        }
    }

    /// Wakes who carries messages, who looks for none where there is one machine.
    pub(crate) fn bring_news(&self) {
        self.header().news_due.store(1, SeqCst);
        rouse(&self.header().news);
    }

    fn has_news(&self) -> bool {
        let instant = VirtualInstant::from_ns;
        let asks = |guest: usize| {
            let member = self.member(guest);
            let state = member.state.load(Relaxed);
            if state == LEFT {
                return member.asked_state.load(Relaxed) != LEFT;
            }
            let Some(wanted_ns) = self.wanted_ns(guest) else { return false };
            let is_new = (member.asked_state.load(SeqCst), member.asked_ns.load(Relaxed)) != (state, wanted_ns);
            is_new
                && self.elsewhere().any(|other| {
                    is_in_the_way(instant(self.next_ns(other)), self.distance(other, guest), instant(wanted_ns))
                })
        };
        let can_be_let_go = |guest: usize| {
            let asked_ns = self.member(guest).asked_ns.load(SeqCst);
            let own = self.here().map(|own| {
                let told = instant(self.member(own).told_ns.load(SeqCst));
                (told, instant(self.next_ns(own)), self.distance(own, guest))
            });
            asked_ns != NEVER && frees(own, instant(asked_ns))
        };
        self.here().any(asks) || self.elsewhere().any(can_be_let_go)
    }

    /// The latest instant that is worth telling.
    fn latest_ns(&self) -> u64 {
        let of = |guest: usize| {
            let member = self.member(guest);
            if self.is_here(guest) {
                self.wanted_ns(guest).unwrap_or_else(|| self.next_ns(guest))
            } else if member.state.load(Relaxed) == RUNNING {
                self.next_ns(guest)
            } else {
                member.asked_ns.load(SeqCst)
            }
        };
        let latest_ns = (0..self.guests()).map(of).filter(|&ns| ns != NEVER).max();
        latest_ns.unwrap_or(0).saturating_add(SLACK_NS)
    }
}

/// A machine, as who carries its messages sees its memory.
#[derive(Clone)]
pub struct Machine {
    wire: Wire,
}

impl Machine {
    /// The machine of that memory.
    #[must_use]
    pub const fn new(wire: Wire) -> Self {
        Self { wire }
    }

    /// Waits until there is something to tell.
    pub fn wait_for_news(&self) {
        let header = self.wire.header();
        loop {
            let watched = header.news.load(SeqCst);
            if header.news_due.load(SeqCst) != 0 {
                return;
            }
            futex::wait(&header.news, watched, None);
        }
    }

    /// Hands over what there is to tell of the guests here. Frames that were sent before are in the rings by then.
    pub fn tell(&self, mut take: impl FnMut(usize, Word)) {
        let wire = &self.wire;
        futex::locked(&wire.header().lock, || {
            wire.header().news_due.store(0, SeqCst);
            let latest_ns = wire.latest_ns();
            for guest in wire.here() {
                let member = wire.member(guest);
                let state = member.state.load(Relaxed);
                let wanted_ns = wire.wanted_ns(guest).unwrap_or(NEVER);
                let next_ns = if state == LEFT { NEVER } else { wire.next_ns(guest).min(latest_ns) };
                member.told_ns.store(next_ns, SeqCst);
                member.asked_ns.store(wanted_ns, Relaxed);
                member.asked_state.store(state, SeqCst);
                take(guest, Word { next_ns, asked_ns: wanted_ns, state });
            }
            for guest in wire.elsewhere() {
                let told = |own| wire.member(own).told_ns.load(SeqCst).saturating_add(wire.distance_ns(own, guest));
                let bound_ns = wire.here().map(told).min().unwrap_or(NEVER);
                wire.member(guest).horizon_ns.fetch_max(bound_ns, SeqCst);
            }
        });
    }

    /// Takes over what was told of guests elsewhere, each lowered by frames to it that were taken out of rings and are not
    /// counted in its word yet; lets run whoever may go on.
    pub fn take_over(&self, words: impl Iterator<Item = (usize, Word)>) {
        let wire = &self.wire;
        futex::locked(&wire.header().lock, || {
            for (guest, word) in words.filter(|&(guest, _)| !wire.is_here(guest)) {
                let member = wire.member(guest);
                member.next_ns.store(word.next_ns, SeqCst);
                member.asked_ns.store(word.asked_ns, SeqCst);
                member.state.store(word.state, SeqCst);
            }
            for (way, receiver) in self.ways_out() {
                if let Some(arrival_ns) = wire.first_arrival_ns(way) {
                    receiver.next_ns.fetch_min(arrival_ns, SeqCst);
                    receiver.asked_ns.fetch_min(arrival_ns, SeqCst);
                }
            }
            wire.let_run(usize::MAX);
            wire.look_for_news();
        });
    }

    /// The ways that lead elsewhere, with their receivers.
    fn ways_out(&self) -> impl Iterator<Item = (&Way, &Member)> + '_ {
        (0..self.wire.ways()).map(|way| self.wire.way(way)).filter_map(|way| {
            let [sender, receiver] = [&way.sender, &way.receiver].map(|end| end.load(Relaxed) as usize);
            let leads_out = self.wire.is_here(sender) && receiver < self.wire.guests() && !self.wire.is_here(receiver);
            leads_out.then(|| (way, self.wire.member(receiver)))
        })
    }

    /// Takes the first frame out of the ring of a way to elsewhere.
    #[must_use]
    pub fn take_frame(&self, way: usize, bytes: &mut [u8]) -> Received {
        let part = [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }];
        // SAFETY: the part is ours; whoever carries messages is the only receiver here.
        unsafe { self.wire.receive(self.wire.way(way), NEVER, &part) }
    }

    /// Puts a frame of a guest elsewhere into the ring of its way to `receiver`.
    ///
    /// # Errors
    /// The ring is full, which the memory says too.
    pub fn deliver(&self, number: usize, receiver: usize, arrival_ns: u64, bytes: &[u8]) -> Result<(), Full> {
        let way = self.wire.way(number);
        let receiver = self.wire.member(receiver);
        if receiver.state.load(SeqCst) == LEFT {
            add(&way.frames_not_sent, 1);
            return Ok(());
        }
        if arrival_ns < receiver.horizon_ns.load(SeqCst) {
            add(&way.frames_late, 1);
        }
        let part = [libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }];
        // SAFETY: the part is only read; whoever carries messages is the only sender here.
        if let Err(Full) = unsafe { self.wire.send(way, arrival_ns, &part) } {
            self.wire.header().full_way.store(number as u64 + 1, Relaxed);
            return Err(Full);
        }
        receiver.next_ns.fetch_min(arrival_ns, SeqCst);
        receiver.has_more_to_tell(arrival_ns);
        Ok(())
    }
}
