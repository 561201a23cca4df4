//! A capture that somebody follows while it is made, for `dilaton capture`: this program, executed in a node, writes what
//! passes an interface to its standard output.
//!
//! Packets, instants and directions are those of a lab's own captures (`capture.rs`), and so is the file. The reader may be
//! slow, and then it is packets that are lost, as in any capture, and are counted at the end: the run does not wait.
//!
//! It ends when a signal asks for it, when it has as many packets as were asked for, or when nobody reads any more.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Deserialize;

use super::capture::Pending;
use super::pcapng::{self, Counts};
use super::ring::Ring;
use crate::clock::{self, SECOND_NS};
use crate::error::{Doing, Result};
use crate::plan::{Capture, ClockRate};

/// The first argument of this program when it follows.
pub const WORD: &str = "capture";
/// Packets are handed on after so long at the latest, in virtual time.
const TIMEOUT_MS: u32 = 50;

/// What is wanted: the second argument, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    capture: Capture,
    /// How many packets at most; `None`: until somebody ends it.
    count: Option<u64>,
    /// CLOCK_REALTIME at virtual 0.
    date_ns: i64,
    clock_rate: ClockRate,
}

/// Follows as `wanted` says.
///
/// # Errors
/// It is not understood, the interface is not there, or the kernel gives no ring.
pub fn follow(wanted: &str) -> Result<()> {
    let Wanted { capture, count, date_ns, clock_rate } =
        serde_json::from_str(wanted).doing(|| format!("{WORD}: what is wanted"))?;
    clock::set_face(clock_rate.face()?);
    let name = format!("{}:{}", capture.node, capture.interface);
    let doing = || format!("capture on {name}");
    let mut ends = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        ends.add(signal);
    }
    ends.thread_block().doing(doing)?;
    let ends = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC).doing(doing)?;
    let mut ring = Ring::open(&capture.program, TIMEOUT_MS).doing(doing)?;
    ring.bind(if_nametoindex(capture.interface.as_str()).doing(doing)?).doing(doing)?;

    let mut followed = Followed { pending: Pending::new(date_ns), counts: Counts::default(), most: count };
    let from_ns = instant_ns(date_ns);
    pcapng::begin(&mut followed.pending.bytes, &name, capture.snaplen, capture.filter.as_deref());
    let mut ended = !followed.write();
    while !ended {
        ended = wait(&ring, &ends).doing(doing)?;
        while ring.read_block(|packet| followed.take(&packet)) {
            ended |= !followed.write();
        }
        ring.forget_error();
        ended |= followed.is_full();
    }
    ring.read_rest(|packet| followed.take(&packet)).doing(doing)?;
    let (received, dropped) = ring.counts().doing(doing)?;
    // With the pending packets, so that they are counted as written.
    followed.write();
    followed.counts.received = received.saturating_sub(followed.pending.early);
    followed.counts.dropped = dropped;
    pcapng::end(&mut followed.pending.bytes, from_ns, instant_ns(date_ns), followed.counts);
    followed.write();
    Ok(())
}

struct Followed {
    pending: Pending,
    counts: Counts,
    most: Option<u64>,
}

impl Followed {
    fn take(&mut self, packet: &super::ring::Packet<'_>) {
        if !self.is_full() {
            self.pending.append(packet);
        }
    }

    fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.counts.written + self.pending.packets >= most)
    }

    /// Hands on what is pending; false when nobody reads it.
    fn write(&mut self) -> bool {
        let mut stdout = std::io::stdout().lock();
        let result = stdout.write_all(&self.pending.bytes).and_then(|()| stdout.flush());
        self.counts.written += self.pending.clear();
        !result.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe)
    }
}

/// Waits for packets; true when something asks for the end instead, or nobody reads any more.
fn wait(ring: &Ring, ends: &SignalFd) -> nix::Result<bool> {
    let stdout = std::io::stdout();
    let mut sources = [
        PollFd::new(ring.as_fd(), PollFlags::POLLIN),
        PollFd::new(ends.as_fd(), PollFlags::POLLIN),
        PollFd::new(stdout.as_fd(), PollFlags::empty()),
    ];
    match poll(&mut sources, PollTimeout::NONE) {
        Err(Errno::EINTR) => Ok(false),
        result => result.map(|_| sources[1..].iter().any(|source| source.any().unwrap_or(true))),
    }
}

/// Virtual time since virtual 0, which was `date_ns` of CLOCK_REALTIME.
fn instant_ns(date_ns: i64) -> u64 {
    let now = clock::date();
    let own_ns = now.tv_sec() * SECOND_NS + now.tv_nsec() - date_ns;
    clock::face().span(own_ns.max(0).unsigned_abs()).as_ns()
}
