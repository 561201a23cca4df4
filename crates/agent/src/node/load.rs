//! A load: what a node sends to another one, so often, from an instant on.
//!
//! **Who sends.** A child of the node's init, which never becomes another program: it is in the node's network and control
//! group, is paused with the node's programs and killed with them, and has no files of the node. As it is never executed,
//! no CPU of a node is charged for it (`clock/src/nodes/shares.rs`): it sends as fast as it is told, whatever else its node
//! does. What its node's kernel does with the packets, and all that the other node does, is as it would be.
//!
//! **When.** Each has an instant of its own, a whole number of intervals after the begin, rounded down to a nanosecond; so
//! nothing adds up. Whoever wakes up late sends all that is due. Those at the end's instant or later are not sent: the sender
//! knows when that is, and the agent, which is before it on the CPU, kills it then.
//!
//! **How many.** They are counted in memory that agent and sender share, so that the agent knows at the instant of the end and
//! need not wait for anybody (`tally.rs`).

mod flood;
mod http;
pub mod tally;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::error::{Doing, Result};
use crate::node::load::flood::{Syns, Udp};
use crate::node::load::http::Http;
use crate::node::load::tally::Tally;

/// Open files of a sender: a connection or port each.
const OPEN_FILES: u64 = 65_536;

/// What is sent, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The address of the other node.
    pub to: IpAddr,
    /// Its port.
    pub port: u16,
    /// What is sent to it.
    pub what: What,
    /// So many in each `every_ns`, more than 0.
    pub count: u64,
    /// See `count`; more than 0.
    pub every_ns: u64,
}

/// Kinds of loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// First segments of TCP connections that never go on.
    Syn,
    /// Datagrams.
    Udp {
        /// Bytes of each.
        bytes: u16,
    },
    /// Requests, each over a connection of its own.
    Http {
        /// The other node, as its programs know it.
        host: String,
        /// What is asked for.
        path: String,
    },
}

/// What sends one after the other.
enum Sender {
    Syns(Syns),
    Udp(Udp),
    Http(Http),
}

impl Load {
    /// The instant of one of those that are sent, counted from 0, of a load that begins at `begin_ns`.
    fn instant_ns(&self, number: u64, begin_ns: i64) -> i64 {
        let after = u128::from(number) * u128::from(self.every_ns) / u128::from(self.count);
        begin_ns.saturating_add(i64::try_from(after).unwrap_or(i64::MAX))
    }
}

/// Sends all of it, from one instant of the guest's clock to another one, and then waits for its own end.
///
/// # Errors
/// The kernel refuses something that it does not refuse for what the network is like.
pub fn send(load: &Load, begin_ns: i64, end_ns: i64, tally: OwnedFd) -> Result<std::convert::Infallible> {
    let tally = Tally::of(tally)?;
    setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES).doing(|| "raise the limit of open files".to_owned())?;
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
        .doing(|| "timerfd".to_owned())?;
    let mut sender = match &load.what {
        What::Syn => Sender::Syns(Syns::new(load.to, load.port)),
        What::Udp { bytes } => Sender::Udp(Udp::new(load.to, load.port, *bytes)?),
        What::Http { host, path } => Sender::Http(Http::new(load.to, load.port, host, path)?),
    };
    for number in 0.. {
        let due_ns = load.instant_ns(number, begin_ns);
        if due_ns >= end_ns {
            break;
        }
        let alarm = clock::reading(due_ns);
        while clock::now_ns() < due_ns {
            timer
                .set(Expiration::OneShot(alarm), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
                .doing(|| "set the timer".to_owned())?;
            sender.wait(Some(timer.as_fd()), &tally)?;
        }
        sender.send(&tally)?;
    }
    loop {
        sender.wait(None, &tally)?;
    }
}

impl Sender {
    fn send(&mut self, tally: &Tally) -> Result<()> {
        let sent = match self {
            Self::Syns(syns) => syns.send(),
            Self::Udp(udp) => udp.send(),
            Self::Http(http) => http.send(),
        };
        match sent {
            Ok(()) => tally.sent.add(),
            Err(errno) if is_of_network(errno) => tally.refused.add(),
            Err(errno) => return Err(errno).doing(|| "send a load".to_owned()),
        }
        Ok(())
    }

    /// Waits for the alarm, and takes what comes in the meantime.
    fn wait(&mut self, alarm: Option<BorrowedFd<'_>>, tally: &Tally) -> Result<()> {
        let answers = if let Self::Http(http) = &*self { Some(http.as_fd()) } else { None };
        let sources = alarm.into_iter().chain(answers);
        let mut sources: Vec<PollFd> = sources.map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).doing(|| "poll".to_owned()),
        }
        match self {
            Self::Http(http) => http.take_answers(tally),
            _ => Ok(()),
        }
    }
}

/// Whether a kernel refuses to send for what the network is like, or for how much there is.
fn is_of_network(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EADDRNOTAVAIL
            | Errno::EAGAIN
            | Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::EMFILE
            | Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::ENOBUFS
            | Errno::ENOMEM
            | Errno::EPERM
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_adds_up_in_the_instants_of_a_load() {
        let load =
            Load { to: "10.0.0.1".parse().unwrap(), port: 80, what: What::Syn, count: 3, every_ns: 1_000_000_000 };
        let instants: Vec<i64> = (0..4).map(|number| load.instant_ns(number, 5)).collect();
        assert_eq!(instants, [5, 333_333_338, 666_666_671, 1_000_000_005]);
        assert_eq!(load.instant_ns(3_000_000_000, 5), 1_000_000_000_000_000_005);
        assert_eq!(load.instant_ns(u64::MAX, 5), i64::MAX);
    }
}
