//! Route netlink in its simplest form: requests are sent together, and the last of them is acknowledged, as are those that the
//! kernel refuses. A request is told by its sequence number, which is its place.
//!
//! Messages are written here byte by byte, since the agent needs a dozen kinds of them and no parsing beyond the kernel's
//! error text. The layout is that of `linux/netlink.h`: a header of 16 bytes, the fixed structure of the request, then
//! attributes (length, kind, payload), everything aligned to 4 bytes and in host byte order.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::socket::{recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use crate::error::{Cause, Doing, Error, Result};

/// The header of a message.
pub const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// Room for the acknowledgement: the header that it repeats, and the kernel's explanation.
const REPLY_BYTES_MAX: usize = 4096;
/// As much is sent together, and one more request: less than what a socket may have under way (net.core.wmem_default).
const BATCH_BYTES: usize = 32 << 10;
/// `NLMSGERR_ATTR_MSG` of `linux/netlink.h`.
const ERROR_ATTRIBUTE_TEXT: u16 = 1;

/// A request under construction.
pub struct Request(Vec<u8>);

/// Requests, each with what it is about, for the error.
pub type Requests = Vec<(Request, String)>;

impl Request {
    /// A request of this kind (`RTM_…`) with these flags beside those that every request has.
    pub fn new(kind: u16, flags: i32) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// A piece without header, to be appended to a request.
    pub fn empty() -> Self {
        Self(Vec::new())
    }

    /// How many bytes it has so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a piece that was built apart.
    #[must_use]
    pub fn append(self, piece: &Self) -> Self {
        self.structure(&piece.0)
    }

    /// Appends a fixed structure, whose length is a multiple of 4.
    #[must_use]
    pub fn structure(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends an attribute.
    #[must_use]
    pub fn attribute(self, kind: u16, payload: &[u8]) -> Self {
        self.nested(kind, |request| request.structure(payload))
    }

    /// Appends an attribute that holds a text, with the zero byte that the kernel wants.
    #[must_use]
    pub fn text(self, kind: u16, text: &str) -> Self {
        self.attribute(kind, &[text.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute whose payload `fill` writes.
    #[must_use]
    pub fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; ATTRIBUTE_HEADER_BYTES]);
        let mut filled = fill(self);
        let length = (filled.0.len() - start) as u16;
        filled.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        filled.0.resize(filled.0.len().next_multiple_of(4), 0);
        filled
    }

    /// The bytes of the request, whole.
    pub fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }

    /// The request as the one of this number among those that are sent together.
    fn numbered(mut self, number: usize, is_last: bool) -> Self {
        if is_last {
            let flags = read_u16(&self.0, 6).unwrap_or(0) | libc::NLM_F_ACK as u16;
            self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        }
        self.0[8..12].copy_from_slice(&(number as u32).to_ne_bytes());
        self
    }
}

/// A route netlink socket. It belongs to the network namespace in which it was opened.
pub struct Socket {
    descriptor: OwnedFd,
}

impl Socket {
    /// Opens a socket in the present network namespace.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn open() -> Result<Self> {
        let descriptor =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
                .doing(|| "open a netlink socket".to_owned())?;
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let on: libc::c_int = 1;
            // SAFETY: the descriptor is open, and `on` is readable for the length that is given.
            let result = unsafe {
                libc::setsockopt(
                    descriptor.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    std::ptr::from_ref(&on).cast(),
                    std::mem::size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            nix::errno::Errno::result(result).doing(|| "ask netlink for error texts".to_owned())?;
        }
        Ok(Self { descriptor })
    }

    /// One that another process has opened so.
    pub fn of_opened(descriptor: OwnedFd) -> Self {
        Self { descriptor }
    }

    /// Carries out `request`; `what` says what it does, for the error.
    ///
    /// # Errors
    /// The kernel refuses it: `what: Invalid argument (its own explanation, if it gives one)`.
    pub fn request(&self, request: Request, what: impl Fn() -> String) -> Result<()> {
        self.batch(vec![(request, what())])
    }

    /// Carries out several requests, mostly in one system call, so that nothing of the guest runs in between.
    ///
    /// # Errors
    /// The first one that the kernel refuses; those after it are carried out all the same.
    pub fn batch(&self, requests: Requests) -> Result<()> {
        let mut first = Ok(());
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let (mut bytes, mut whats) = (Vec::new(), Vec::new());
            while let Some((request, what)) = requests.next() {
                let is_last = bytes.len() + request.len() >= BATCH_BYTES || requests.peek().is_none();
                bytes.extend(request.numbered(whats.len(), is_last).finish());
                whats.push(what);
                if is_last {
                    break;
                }
            }
            first = first.and(self.carry_out(&bytes, &whats));
        }
        first
    }

    fn carry_out(&self, requests: &[u8], whats: &[String]) -> Result<()> {
        let doing = || whats.join(", ");
        send(self.descriptor.as_raw_fd(), requests, MsgFlags::empty()).doing(doing)?;
        let mut first = Ok(());
        loop {
            let mut reply = [0; REPLY_BYTES_MAX];
            let length = recv(self.descriptor.as_raw_fd(), &mut reply, MsgFlags::empty()).doing(doing)?;
            let reply = &reply[..length];
            let number = read_u32(reply, 8).map_or(whats.len(), |number| number as usize);
            first = first.and(acknowledged(reply).doing(|| whats.get(number).cloned().unwrap_or_else(doing)));
            if number + 1 >= whats.len() {
                return first;
            }
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Whether the kernel's reply is an acknowledgement; otherwise its reason.
fn acknowledged(reply: &[u8]) -> Result<()> {
    let malformed = || Error::new("the kernel's netlink reply is malformed");
    let kind = read_u16(reply, 4).ok_or_else(malformed)?;
    if kind != libc::NLMSG_ERROR as u16 {
        return Err(Error::new(format!("the kernel replied with netlink message {kind}")));
    }
    let code = read_u32(reply, HEADER_BYTES).ok_or_else(malformed)? as i32;
    if code == 0 {
        return Ok(());
    }
    let words = nix::errno::Errno::from_raw(-code).words();
    // After the error number comes the header of the request, then the attributes.
    match attribute_text(&reply[(2 * HEADER_BYTES + 4).min(reply.len())..]) {
        Some(text) => Err(Error::new(format!("{words} ({text})"))),
        None => Err(Error::new(words)),
    }
}

/// The kernel's explanation among the attributes of an error reply.
fn attribute_text(mut attributes: &[u8]) -> Option<String> {
    loop {
        let length = read_u16(attributes, 0)? as usize;
        let kind = read_u16(attributes, 2)?;
        let payload = attributes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if kind == ERROR_ATTRIBUTE_TEXT {
            return Some(String::from_utf8_lossy(payload).trim_end_matches('\0').to_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// A number of 16 bits in the kernel's byte order; `None` behind the end.
pub fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number of 32 bits in the kernel's byte order; `None` behind the end.
pub fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_count_their_header_but_not_their_padding_and_nest() {
        let bytes = Request::new(16, 0).nested(18, |request| request.text(1, "veth")).finish();
        assert_eq!(bytes.len(), HEADER_BYTES + 4 + 12);
        assert_eq!(read_u32(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(read_u16(&bytes, HEADER_BYTES), Some(16));
        assert_eq!(read_u16(&bytes, HEADER_BYTES + 4), Some(9));
        assert_eq!(&bytes[HEADER_BYTES + 8..HEADER_BYTES + 13], b"veth\0");
    }

    #[test]
    fn a_refusal_carries_the_kernels_own_explanation() {
        let mut reply = vec![0; 2 * HEADER_BYTES + 4];
        reply[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        reply[16..20].copy_from_slice(&(-libc::EINVAL).to_ne_bytes());
        assert_eq!(acknowledged(&reply).unwrap_err().to_string(), "Invalid argument");
        reply.extend_from_slice(&8_u16.to_ne_bytes());
        reply.extend_from_slice(&1_u16.to_ne_bytes());
        reply.extend_from_slice(b"bad\0");
        assert_eq!(acknowledged(&reply).unwrap_err().to_string(), "Invalid argument (bad)");
    }
}
