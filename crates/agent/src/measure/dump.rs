//! Netlink dumps: one request, and all that the kernel has to tell about it.
//!
//! A dump is two system calls, whatever its length: the kernel makes the next piece of an answer when one is taken, so
//! one `recvmmsg` takes several, the message that ends the dump included.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use crate::error::{Cause, Doing, Error, Result};
use crate::netlink::{read_u16, read_u32, Request, HEADER_BYTES};

/// What the kernel puts into one piece of an answer at most.
const PIECE_BYTES: usize = 32 * 1024;
const PIECES: usize = 4;

/// Room for answers, shared by all dumps of a process.
pub struct Room(Vec<u8>);

impl Room {
    /// Room for the pieces that one call takes.
    pub fn new() -> Self {
        Self(vec![0; PIECES * PIECE_BYTES])
    }
}

/// A dump that is made again and again, in the network namespace in which it was opened.
pub struct Dump {
    socket: OwnedFd,
    request: Vec<u8>,
    what: &'static str,
}

impl Dump {
    /// Opens a socket of `protocol` in the present network namespace for dumps of `what`.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn open(protocol: SockProtocol, request: Request, what: &'static str) -> Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
            .doing(|| format!("open a socket for {what}"))?;
        Ok(Self { socket, request: request.finish(), what })
    }

    /// Makes the dump; `each` gets the body of every message.
    ///
    /// # Errors
    /// The kernel refuses it, or breaks it off.
    pub fn make(&self, room: &mut Room, mut each: impl FnMut(&[u8])) -> Result<()> {
        let doing = || format!("dump of {}", self.what);
        send(self.socket.as_raw_fd(), &self.request, MsgFlags::empty()).doing(doing)?;
        loop {
            let lengths = receive(&self.socket, room).doing(doing)?;
            for (piece, length) in room.0.chunks_exact(PIECE_BYTES).zip(lengths) {
                if read_piece(&piece[..length], &mut each).doing(doing)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Receives up to [`PIECES`] datagrams, and returns their lengths.
fn receive(socket: &OwnedFd, room: &mut Room) -> nix::Result<Vec<usize>> {
    let mut parts: [libc::iovec; PIECES] = std::array::from_fn(|piece| libc::iovec {
        iov_base: room.0[piece * PIECE_BYTES..].as_mut_ptr().cast(),
        iov_len: PIECE_BYTES,
    });
    // SAFETY: zeros are a valid value of this structure of numbers and pointers.
    let mut headers: [libc::mmsghdr; PIECES] = unsafe { std::mem::zeroed() };
    for (header, part) in headers.iter_mut().zip(&mut parts) {
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
    }
    let flags = libc::MSG_WAITFORONE as _;
    // SAFETY: every header points at one part, and every part at `PIECE_BYTES` of the room; all outlive the call.
    let count =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), PIECES as u32, flags, std::ptr::null_mut()) };
    let count = Errno::result(count)? as usize;
    Ok(headers[..count].iter().map(|header| header.msg_len as usize).collect())
}

/// Hands the bodies of the messages in a piece to `each`; whether the dump has ended.
fn read_piece(mut piece: &[u8], each: &mut impl FnMut(&[u8])) -> Result<bool> {
    while !piece.is_empty() {
        let malformed = || Error::new("the kernel's answer is malformed");
        let length = read_u32(piece, 0).ok_or_else(malformed)? as usize;
        let kind = i32::from(read_u16(piece, 4).ok_or_else(malformed)?);
        let body = piece.get(HEADER_BYTES..length).ok_or_else(malformed)?;
        match kind {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code = read_u32(body, 0).ok_or_else(malformed)? as i32;
                return Err(Error::new(Errno::from_raw(-code).words()));
            }
            _ => each(body),
        }
        piece = &piece[length.next_multiple_of(4).min(piece.len())..];
    }
    Ok(false)
}

/// The attributes in `bytes`: kind and payload of each.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = read_u16(bytes, 0)? as usize;
        let kind = read_u16(bytes, 2)? & !(libc::NLA_F_NESTED as u16);
        let payload = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

/// A number of 64 bits in the kernel's byte order; 0 where an older kernel ends its structure.
pub fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |found| u64::from_ne_bytes(found.try_into().expect("eight bytes")))
}

/// A number of 32 bits, as [`number`].
pub fn small_number(bytes: &[u8], at: usize) -> u32 {
    read_u32(bytes, at).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_piece_is_read_to_the_message_that_ends_the_dump() {
        let piece = [message(16, b"one"), message(16, b"three"), message(libc::NLMSG_DONE, &[0; 4])].concat();
        let mut found = Vec::new();
        assert!(read_piece(&piece, &mut |body| found.push(body.to_vec())).unwrap());
        assert_eq!(found, [&b"one"[..], b"three"]);
        assert!(!read_piece(&message(16, b"one"), &mut |_| ()).unwrap());
    }

    #[test]
    fn a_refusal_and_a_broken_message_are_errors() {
        let refused = message(libc::NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(read_piece(&refused, &mut |_| ()).unwrap_err().to_string(), "Operation not permitted");
        assert!(read_piece(&message(16, b"one")[..17], &mut |_| ()).is_err());
    }

    #[test]
    fn attributes_are_found_one_after_the_other_whatever_their_padding() {
        let bytes = [&[5, 0, 7, 0, 9, 0, 0, 0][..], &[6, 0, 8, 128, 1, 2]].concat();
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(7, &[9][..]), (8, &[1, 2][..])]);
    }
}
