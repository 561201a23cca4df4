//! Netlink dumps: one request, and all that the kernel has to tell about it.
//!
//! Sampling a hundred nodes takes a hundred sockets, since a socket tells of its own network namespace only, and a dump
//! is three system calls: a request, its answer, and the word that the answer is over. A system call costs a guest ten
//! times what it costs the host, more than what most of these dumps are. So the kernel is handed many dumps at once, by
//! an io_uring, which it carries out within one system call.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{opcode, types, IoUring};
use nix::errno::Errno;
use nix::sys::socket::{recv, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use crate::error::{Cause, Doing, Error, Result};
use crate::network::netlink::{read_u16, read_u32, Request, HEADER_BYTES};

/// What the kernel puts into one piece of an answer at most.
const PIECE_BYTES: usize = 32 * 1024;
/// A request, a piece of the answer, and another one; there are more only where a node has very much to tell.
const STEPS: usize = 3;
const PIECES: usize = STEPS - 1;
/// Dumps that are made at once.
const BATCH: usize = 32;

/// A dump in the network namespace in which it was opened.
struct Dump {
    socket: OwnedFd,
    request: Vec<u8>,
}

/// Dumps of one kind of thing that are made together, again and again.
pub struct Dumps {
    what: &'static str,
    singles: Vec<Dump>,
    ring: IoUring,
    room: Vec<u8>,
}

impl Dumps {
    /// No dumps yet, of `what`.
    ///
    /// # Errors
    /// The kernel has no io_uring.
    pub fn new(what: &'static str) -> Result<Self> {
        let ring = IoUring::new((BATCH * STEPS) as u32).doing(|| "make an io_uring".to_owned())?;
        Ok(Self { what, singles: Vec::new(), ring, room: vec![0; BATCH * PIECES * PIECE_BYTES] })
    }

    /// Adds one in the present network namespace.
    ///
    /// # Errors
    /// The kernel gives no socket.
    pub fn add(&mut self, protocol: SockProtocol, request: Request) -> Result<()> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
            .doing(|| format!("open a socket for {}", self.what))?;
        self.singles.push(Dump { socket, request: request.finish() });
        Ok(())
    }

    /// Makes all dumps, one after the other; `each` gets the number of the dump and the body of every message.
    ///
    /// # Errors
    /// The kernel refuses one, or breaks it off.
    pub fn make(&mut self, mut each: impl FnMut(usize, &[u8])) -> Result<()> {
        let Self { what, singles, ring, room } = self;
        for (batch, dumps) in singles.chunks(BATCH).enumerate() {
            let doing = || format!("dump of {what}");
            let results = submit(ring, dumps, room).doing(doing)?;
            for (place, dump) in dumps.iter().enumerate() {
                let number = batch * BATCH + place;
                let pieces = room[place * PIECES * PIECE_BYTES..].chunks_exact(PIECE_BYTES);
                finish(dump, &results[place], pieces, &mut |body| each(number, body)).doing(doing)?;
            }
        }
        Ok(())
    }
}

/// Makes `dumps`, and returns the result of each step: a length, or a negative error number.
fn submit(ring: &mut IoUring, dumps: &[Dump], room: &mut [u8]) -> std::io::Result<[[i32; STEPS]; BATCH]> {
    let mut pieces = room.chunks_exact_mut(PIECE_BYTES);
    for (place, dump) in dumps.iter().enumerate() {
        let socket = types::Fd(dump.socket.as_raw_fd());
        let request = opcode::Send::new(socket, dump.request.as_ptr(), dump.request.len() as u32).build();
        // Nothing is waited for: the answer is there when the request returns, and one in one piece has no other.
        let mut receive = || {
            let piece = pieces.next().expect("the room has all pieces of a batch");
            opcode::Recv::new(socket, piece.as_mut_ptr(), PIECE_BYTES as u32).flags(libc::MSG_DONTWAIT).build()
        };
        for (step, entry) in [request, receive(), receive()].into_iter().enumerate() {
            let entry = entry.user_data((place * STEPS + step) as u64);
            // SAFETY: the request and the pieces outlive the operation, since all of them are awaited below.
            unsafe { ring.submission().push(&entry) }.expect("the ring has room for a batch");
        }
    }
    let count = dumps.len() * STEPS;
    let mut results = [[0; STEPS]; BATCH];
    let mut awaited = count;
    while awaited > 0 {
        ring.submit_and_wait(awaited)?;
        for completion in ring.completion() {
            let number = completion.user_data() as usize;
            results[number / STEPS][number % STEPS] = completion.result();
            awaited -= 1;
        }
    }
    Ok(results)
}

/// Reads the answer of one dump, and what there is of it behind the pieces.
fn finish<'a>(
    dump: &Dump,
    results: &[i32; STEPS],
    pieces: impl Iterator<Item = &'a [u8]>,
    each: &mut impl FnMut(&[u8]),
) -> Result<()> {
    let length = |result: i32| usize::try_from(result).map_err(|_| Error::new(Errno::from_raw(-result).words()));
    length(results[0])?;
    for (&result, piece) in results[1..].iter().zip(pieces).filter(|(&result, _)| result != -libc::EAGAIN) {
        let length = length(result)?;
        if read_piece(&piece[..length], each)? {
            return Ok(());
        }
    }
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = recv(dump.socket.as_raw_fd(), &mut piece, MsgFlags::empty()).doing(|| "receive".to_owned())?;
        if read_piece(&piece[..length], each)? {
            return Ok(());
        }
    }
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
    use nix::sys::socket::{send, socketpair};

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
    fn an_answer_that_is_longer_than_its_pieces_or_late_is_received_to_its_end() {
        let (socket, kernel) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let dump = Dump { socket, request: Vec::new() };
        let done = message(libc::NLMSG_DONE, &[0; 4]);
        let (one, two) = (message(16, b"one"), message(16, b"two"));
        for (results, behind) in [
            ([0, 20, 20], vec![&done]),
            ([0, 20, -libc::EAGAIN], vec![&two, &done]),
            ([0, -libc::EAGAIN, -libc::EAGAIN], vec![&one, &two, &done]),
        ] {
            for piece in behind {
                send(kernel.as_raw_fd(), piece, MsgFlags::empty()).unwrap();
            }
            let mut found = Vec::new();
            finish(&dump, &results, [&one[..], &two[..]].into_iter(), &mut |body| found.push(body.to_vec())).unwrap();
            assert_eq!(found, [b"one", b"two"]);
        }
    }

    #[test]
    fn a_request_that_the_kernel_does_not_take_is_an_error_and_its_answer_not_waited_for() {
        let (socket, _kernel) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let results = [-libc::ENOBUFS, -libc::EAGAIN, -libc::EAGAIN];
        let dump = Dump { socket, request: Vec::new() };
        let error = finish(&dump, &results, [&[][..], &[][..]].into_iter(), &mut |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "No buffer space available");
    }

    #[test]
    fn attributes_are_found_one_after_the_other_whatever_their_padding() {
        let bytes = [&[5, 0, 7, 0, 9, 0, 0, 0][..], &[6, 0, 8, 128, 1, 2]].concat();
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(7, &[9][..]), (8, &[1, 2][..])]);
    }
}
