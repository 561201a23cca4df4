//! The agents of the other guests of a run, and what they tell each other.
//!
//! A process may wait for one in another guest, and a run ends when the foreground of all guests has. What a schedule has
//! to know of other guests' entries ([`Moments`]) must not come by way of the host: it would come at an instant that
//! the host's load decides. So it goes by wires of its own, which deliver it at an exact virtual instant as they do any
//! frame: a star around the first guest of the plan, whose agent passes on what it hears to all the others. The devices
//! stay in the guest's own network namespace, which no node is in.
//!
//! A frame carries the moments of one entry, as JSON, behind an Ethernet header of a type that is set aside for such uses.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{recv, send, setsockopt, socket, sockopt, AddressFamily, MsgFlags, SockFlag, SockType};
use requests::NEWS_ETHERTYPE;
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Result};
use crate::guest::set_sysctl;
use crate::network;
use crate::plan::Plan;
use crate::schedule::{Moments, Place};

const HEADER_BYTES: usize = 14;
const FRAME_BYTES_MAX: usize = 1514;
/// Room for what arrives while the agent does something else: some thousand frames.
const RECEIVE_BYTES: usize = 8 << 20;

/// What became of an entry of the course, for the guests that do not hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct News {
    /// Which.
    pub entry: Place,
    /// How it stands now.
    pub moments: Moments,
}

/// The lines to the other agents.
pub struct Peers {
    /// The lines to all others, in the first guest; in another, the line to the first.
    lines: Vec<OwnedFd>,
}

impl Peers {
    /// Opens the lines of the guest named `guest`, whose own network namespace the caller is in.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn open(plan: &Plan, guest: &str) -> Result<Self> {
        let own = plan.wires.iter().filter(|wire| wire.link.is_none()).flat_map(|wire| [&wire.ends.0, &wire.ends.1]);
        let lines = own.filter(|end| end.guest == guest).map(|end| open_line(&end.device)).collect::<Result<_>>()?;
        Ok(Self { lines })
    }

    /// The lines, in their order, to wait for.
    pub fn lines(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.lines.iter().map(AsFd::as_fd)
    }

    /// Tells all others.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn tell(&self, news: News) -> Result<()> {
        let frame = frame(news)?;
        self.lines.iter().try_for_each(|line| send_frame(line, &frame))
    }

    /// Takes what has come on a line, the oldest first, and passes it on to the other lines.
    ///
    /// # Errors
    /// What came is not of an agent.
    pub fn hear(&self, line: usize) -> Result<Vec<News>> {
        let mut heard = Vec::new();
        loop {
            let mut bytes = [0; FRAME_BYTES_MAX];
            let length = match recv(self.lines[line].as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN) => return Ok(heard),
                result => result.doing(|| "hear from another guest".to_owned())?,
            };
            heard.push(news(&bytes[..length])?);
            for (_, other) in self.lines.iter().enumerate().filter(|(number, _)| *number != line) {
                send_frame(other, &bytes[..length])?;
            }
        }
    }
}

fn open_line(device: &str) -> Result<OwnedFd> {
    let doing = || format!("open the line {device} to another guest");
    set_sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "1")?;
    let index = if_nametoindex(device).doing(doing)?;
    network::set_up_here(index, device)?;
    let line = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).doing(doing)?;
    setsockopt(&line, sockopt::RcvBufForce, &RECEIVE_BYTES).doing(doing)?;
    network::bind_packets(&line, NEWS_ETHERTYPE, index).doing(doing)?;
    Ok(line)
}

fn frame(news: News) -> Result<Vec<u8>> {
    let broadcast_from_nobody = [[0xFF; 6], [0; 6]].concat();
    let body = serde_json::to_vec(&news).doing(|| "write to other guests".to_owned())?;
    Ok([broadcast_from_nobody, NEWS_ETHERTYPE.to_be_bytes().to_vec(), body].concat())
}

fn news(frame: &[u8]) -> Result<News> {
    let body = frame.get(HEADER_BYTES..).unwrap_or_default();
    serde_json::from_slice(body).doing(|| format!("what another guest says: {}", String::from_utf8_lossy(body)))
}

fn send_frame(line: &OwnedFd, frame: &[u8]) -> Result<()> {
    send(line.as_raw_fd(), frame, MsgFlags::empty()).doing(|| "tell another guest".to_owned()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Outlook;

    #[test]
    fn news_survive_their_frame() {
        for entry in [Place::Process(7), Place::Timed(2)] {
            let told = News { entry, moments: Moments::all(Outlook::Missed) };
            assert_eq!(news(&frame(told).unwrap()).unwrap(), told);
        }
    }

    #[test]
    fn what_is_not_of_an_agent_is_an_error() {
        assert!(news(&[0; 60]).is_err());
        assert!(news(&[0; 3]).is_err());
    }
}
