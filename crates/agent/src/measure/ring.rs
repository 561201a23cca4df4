//! A ring of blocks that the kernel fills with packets: AF_PACKET with TPACKET_V3 (packet(7), `linux/if_packet.h`).
//!
//! The kernel wakes the reader when a *block* is full, or when its time is up, so that a packet costs no wake-up and no
//! system call. At the end the last block is therefore open: a filter that accepts nothing stops what comes in, and then
//! the open block is read as it is, since the kernel keeps the count of its packets up to date with each.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{fence, Ordering};

use nix::errno::Errno;
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{getsockopt, socket, AddressFamily, SockFlag, SockType};

use super::dump::small_number;
use crate::network::bind_packets;
use crate::network::filter::attach;
use crate::plan::BpfInstruction;

/// Holds the largest packet that an interface with offloads passes on.
pub const BLOCK_BYTES: usize = 256 * 1024;
const BLOCKS: usize = 16;

const WORD_BYTES: usize = 4;
/// Where fields of `struct tpacket_block_desc` are.
const STATUS_AT: usize = 8;
const PACKETS_AT: usize = 12;
const FIRST_AT: usize = 16;
/// The size of `struct tpacket3_hdr`, behind which comes `struct sockaddr_ll`.
const PACKET_HEADER_BYTES: usize = 48;
const KIND_AT: usize = PACKET_HEADER_BYTES + 10;

/// A socket with its ring, in the network namespace in which it was opened.
pub struct Ring {
    socket: OwnedFd,
    /// The ring in words, since the kernel's headers are made of them.
    memory: NonNull<u32>,
    /// The block that is handed over next.
    next: usize,
}

/// A packet in a ring.
pub struct Packet<'a> {
    /// CLOCK_REALTIME when it passed.
    pub date_ns: i64,
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// How long it was, without the tag that `vlan` holds.
    pub length: u32,
    /// Protocol and content of the VLAN tag that it had, which the kernel has taken out of its bytes.
    pub vlan: Option<(u16, u16)>,
    /// Whether the node sent it.
    pub is_outgoing: bool,
}

impl Ring {
    /// Opens a ring for packets that `program` accepts. It stays empty until [`Ring::bind`]. A block with packets is handed
    /// over after `timeout_ms` at the latest.
    ///
    /// # Errors
    /// The kernel refuses it, for lack of memory.
    pub fn open(program: &[BpfInstruction], timeout_ms: u32) -> nix::Result<Self> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        attach(&socket, program)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as i32))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: BLOCK_BYTES as u32,
            tp_frame_nr: BLOCKS as u32,
            tp_retire_blk_tov: timeout_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of a new mapping.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), BLOCKS * BLOCK_BYTES, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address 0");
        Ok(Self { socket, memory, next: 0 })
    }

    /// Lets it take all that passes interface number `interface` from now on.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn bind(&self, interface: u32) -> nix::Result<()> {
        bind_packets(&self.socket, libc::ETH_P_ALL as u16, interface)
    }

    /// Takes note that the interface went down. The socket would be ready until somebody does; it goes on when the interface
    /// is up again.
    pub fn forget_error(&self) {
        // Of an open socket it can be asked.
        let _ = getsockopt(&self.socket, SocketError);
    }

    /// Hands the packets of the next full block to `each`; false when no block is full.
    pub fn read_block(&mut self, each: impl FnMut(Packet<'_>)) -> bool {
        if self.word(STATUS_AT) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        fence(Ordering::Acquire);
        self.read(each);
        // Of a block that is never opened again the count must not tell of packets that were read.
        self.set_word(PACKETS_AT, 0);
        fence(Ordering::Release);
        self.set_word(STATUS_AT, libc::TP_STATUS_KERNEL);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// Takes nothing more, and hands the packets that are still there to `each`.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn read_rest(&mut self, mut each: impl FnMut(Packet<'_>)) -> nix::Result<()> {
        const RETURN: u16 = 6;
        attach(&self.socket, &[BpfInstruction(RETURN, 0, 0, 0)])?;
        while self.read_block(&mut each) {}
        self.read(each);
        Ok(())
    }

    /// How many packets the program has accepted, and how many of them found no room, since the last call.
    ///
    /// # Errors
    /// None is known.
    pub fn counts(&self) -> nix::Result<(u64, u64)> {
        let mut counts = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = std::mem::size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the structure is writable for the length that is given.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &mut length,
            )
        };
        Errno::result(result)?;
        Ok((counts.tp_packets.into(), counts.tp_drops.into()))
    }

    fn read(&self, mut each: impl FnMut(Packet<'_>)) {
        // SAFETY: the block lies in the mapping, which outlives the slice; the kernel does not write to a block that it
        // has handed over, nor to the packets of the open one once nothing comes in.
        let block = unsafe { std::slice::from_raw_parts(self.block().cast::<u8>(), BLOCK_BYTES) };
        let mut at = small_number(block, FIRST_AT) as usize;
        for _ in 0..small_number(block, PACKETS_AT) {
            let header = &block[at..];
            each(packet(header));
            at += small_number(header, 0) as usize;
        }
    }

    fn block(&self) -> *mut u32 {
        // SAFETY: `next` is less than the number of blocks in the mapping.
        unsafe { self.memory.as_ptr().add(self.next * BLOCK_BYTES / WORD_BYTES) }
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: the word lies in the block's header, is aligned, and may be written by the kernel: hence volatile.
        unsafe { self.block().add(at / WORD_BYTES).read_volatile() }
    }

    fn set_word(&self, at: usize, value: u32) {
        // SAFETY: as for `word`; the block is ours to write as long as its status says so.
        unsafe { self.block().add(at / WORD_BYTES).write_volatile(value) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCKS * BLOCK_BYTES) };
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads a packet from where its header begins.
fn packet(header: &[u8]) -> Packet<'_> {
    let small = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let begin = usize::from(small(24));
    let captured = small_number(header, 12) as usize;
    let has_tag = small_number(header, 20) & libc::TP_STATUS_VLAN_VALID != 0;
    Packet {
        date_ns: i64::from(small_number(header, 4)) * 1_000_000_000 + i64::from(small_number(header, 8)),
        bytes: &header[begin..begin + captured],
        length: small_number(header, 16),
        vlan: has_tag.then(|| (small(36), small_number(header, 32) as u16)),
        is_outgoing: header[KIND_AT] == libc::PACKET_OUTGOING,
    }
}

fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> nix::Result<()> {
    let length = std::mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is readable for its length, as is what it points to.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_with_its_instant_direction_and_the_tag_that_the_kernel_took_out() {
        let mut header = vec![0; 80];
        for (at, value) in [(4, 2_u32), (8, 7), (12, 3), (16, 60), (20, libc::TP_STATUS_VLAN_VALID), (32, 42)] {
            header[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        header[24..26].copy_from_slice(&76_u16.to_ne_bytes());
        header[36..38].copy_from_slice(&0x8100_u16.to_ne_bytes());
        header[KIND_AT] = libc::PACKET_OUTGOING;
        header[76..79].copy_from_slice(b"abc");
        let packet = packet(&header);
        assert_eq!((packet.date_ns, packet.bytes, packet.length), (2_000_000_007, &b"abc"[..], 60));
        assert_eq!((packet.vlan, packet.is_outgoing), (Some((0x8100, 42)), true));
    }
}
