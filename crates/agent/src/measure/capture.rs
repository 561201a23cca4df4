//! A capture: what passes an interface, from a ring into a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use nix::fcntl::{posix_fadvise, OFlag, PosixFadviseAdvice};
use nix::net::if_::if_nametoindex;

use super::pcapng::{self, Counts, Direction};
use super::ring::{Packet, Ring, BLOCK_BYTES};
use crate::channel::protocol::Observation;
use crate::clock;
use crate::error::{Doing, Error, Result};
use crate::guest::run_dir::RunDir;
use crate::network::Namespace;
use crate::plan;

/// The file is written in pieces of at least this size.
const PIECE_BYTES: usize = 1 << 20;
/// So many of its last pieces a capture gives back when the disk is full, so that the run can still write its results.
const PIECES_GIVEN_BACK: usize = 16;
/// A block with packets is handed over after so long at the latest: long, since every expiry would wake an idle guest.
const BLOCK_TIMEOUT_MS: u32 = 1000;
/// Both addresses of an Ethernet frame, behind which a VLAN tag stands.
const ADDRESSES_BYTES: usize = 12;
const TAG_BYTES: u32 = 4;

/// A capture and its file.
pub struct Capture {
    plan: plan::Capture,
    interface: u32,
    ring: Ring,
    pending: Pending,
    /// Once it has begun.
    file: Option<File>,
    file_bytes: i64,
    /// What the file had before each of its last pieces: bytes and packets.
    marks: VecDeque<(i64, u64)>,
    counts: Counts,
}

/// What is to be written.
pub struct Pending {
    /// CLOCK_REALTIME at virtual 0.
    pub date_ns: i64,
    /// Whole blocks of the file.
    pub bytes: Vec<u8>,
    /// How many packets are in them.
    pub packets: u64,
    /// When it begins, after virtual 0.
    pub from_ns: u64,
    /// Packets that passed before.
    pub early: u64,
}

impl Capture {
    /// Opens a capture in the node's network namespace.
    ///
    /// # Errors
    /// The interface is not there, or the kernel gives no ring.
    pub fn open(plan: &plan::Capture, namespace: &Namespace) -> Result<Self> {
        namespace.enter()?;
        let doing = || format!("capture on {}:{}", plan.node, plan.interface);
        Ok(Self {
            interface: if_nametoindex(plan.interface.as_str()).doing(doing)?,
            ring: Ring::open(&plan.program, BLOCK_TIMEOUT_MS).doing(doing)?,
            pending: Pending::new(0),
            file: None,
            file_bytes: 0,
            marks: VecDeque::with_capacity(PIECES_GIVEN_BACK),
            counts: Counts::default(),
            plan: plan.clone(),
        })
    }

    /// Makes the file and begins to capture; virtual 0 is `date_ns` of CLOCK_REALTIME. Or, from `from_ns` on, goes on with what
    /// another kernel has captured.
    ///
    /// # Errors
    /// The file cannot be made or read, or the interface is gone.
    pub fn begin(&mut self, run_dir: &RunDir, date_ns: i64, from_ns: Option<i64>) -> Result<()> {
        self.pending.date_ns = date_ns;
        let name = format!("{}:{}", self.plan.node, self.plan.interface);
        if let Some(from_ns) = from_ns {
            self.pending.from_ns = from_ns.max(0).unsigned_abs();
            let file = File::from(run_dir.open_file(&self.plan.file, OFlag::O_RDWR | OFlag::O_APPEND)?);
            self.go_on(file).doing(|| format!("go on with {}", self.plan.file))?;
        } else {
            self.file = Some(File::from(run_dir.create(&self.plan.file)?));
            pcapng::begin(&mut self.pending.bytes, &name, self.plan.snaplen, self.plan.filter.as_deref());
        }
        self.ring.bind(self.interface).doing(|| format!("capture on {name}"))
    }

    /// Goes on with a file, whose end with what was counted it takes off.
    fn go_on(&mut self, file: File) -> std::io::Result<()> {
        let mut end = [0; pcapng::END_BYTES];
        let begin = file.metadata()?.len().saturating_sub(end.len() as u64);
        file.read_exact_at(&mut end, begin)?;
        let no_end = || std::io::Error::other("it does not end as captures do");
        self.counts = pcapng::counted(&end).ok_or_else(no_end)?;
        file.set_len(begin)?;
        (self.file, self.file_bytes) = (Some(file), begin as i64);
        Ok(())
    }

    /// Takes the packets of all full blocks; their number, and why the capture has ended, if it has.
    pub fn drain(&mut self) -> (u64, Option<Error>) {
        let before = self.pending.packets + self.counts.written;
        let mut result = Ok(());
        while result.is_ok() && self.ring.read_block(|packet| self.pending.append(&packet)) {
            result = self.write(PIECE_BYTES);
        }
        let packets = self.pending.packets + self.counts.written - before;
        if packets == 0 {
            self.ring.forget_error();
        }
        (packets, result.err())
    }

    /// Writes what is pending, if it is as much as `bytes`.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn write(&mut self, bytes: usize) -> Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| self.pending.bytes.len() >= bytes.max(1)) else {
            return Ok(());
        };
        let doing = || format!("write {}", self.plan.file);
        if self.marks.len() == PIECES_GIVEN_BACK {
            self.marks.pop_front();
        }
        self.marks.push_back((self.file_bytes, self.counts.written));
        file.write_all(&self.pending.bytes).doing(doing)?;
        // The guest has no use for what it wrote, but its memory is memory of the host.
        let _ = posix_fadvise(file.as_raw_fd(), self.file_bytes, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        self.file_bytes += self.pending.bytes.len() as i64;
        self.counts.written += self.pending.clear();
        Ok(())
    }

    /// Ends the capture `t_ns` after virtual 0, and writes what is still there.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn finish(&mut self, t_ns: i64) -> Result<()> {
        let doing = || format!("capture on {}:{}", self.plan.node, self.plan.interface);
        self.ring.read_rest(|packet| self.pending.append(&packet)).doing(doing)?;
        self.count()?;
        self.write(0)?;
        pcapng::end(&mut self.pending.bytes, 0, t_ns.max(0) as u64, self.counts);
        self.write(0)
    }

    /// Ends a capture that the disk has not taken, so that its file holds whole blocks and tells what is missing.
    pub fn abandon(mut self, t_ns: i64, reason: &Error) -> Observation {
        // What fails here only leaves the file less complete than it could be.
        let _ = self.count();
        (self.file_bytes, self.counts.written) = self.marks.front().copied().unwrap_or_default();
        self.counts.dropped = self.counts.received.saturating_sub(self.counts.written);
        self.pending.bytes.clear();
        pcapng::end(&mut self.pending.bytes, 0, t_ns.max(0) as u64, self.counts);
        if let Some(file) = &mut self.file {
            let _ = nix::unistd::ftruncate(&*file, self.file_bytes).map(|()| file.write_all(&self.pending.bytes));
        }
        let plan::Capture { node, interface, .. } = self.plan.clone();
        Observation::CaptureEnded { node, interface, reason: reason.to_string() }
    }

    fn count(&mut self) -> Result<()> {
        let (received, dropped) = self.ring.counts().doing(|| format!("count what {} has", self.plan.file))?;
        self.counts.received += received.saturating_sub(std::mem::take(&mut self.pending.early));
        self.counts.dropped += dropped;
        Ok(())
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Pending {
    /// Nothing yet; virtual 0 is `date_ns` of CLOCK_REALTIME.
    pub fn new(date_ns: i64) -> Self {
        // Room for what is read at once, so that it never grows.
        Self { date_ns, bytes: Vec::with_capacity(PIECE_BYTES + 2 * BLOCK_BYTES), packets: 0, from_ns: 0, early: 0 }
    }

    /// Forgets what was written; how many packets that were.
    pub fn clear(&mut self) -> u64 {
        self.bytes.clear();
        std::mem::take(&mut self.packets)
    }

    /// Adds a packet, unless it passed before the begin.
    pub fn append(&mut self, packet: &Packet<'_>) {
        let own_ns = u64::try_from(packet.date_ns - self.date_ns).ok();
        let t_ns = own_ns.map(|own_ns| clock::face().span(own_ns).as_ns());
        let Some(t_ns) = t_ns.filter(|&t_ns| t_ns >= self.from_ns) else {
            self.early += 1;
            return;
        };
        let direction = if packet.is_outgoing { Direction::Out } else { Direction::In };
        match packet.vlan {
            Some((protocol, content)) if packet.bytes.len() >= ADDRESSES_BYTES => {
                let tag = [protocol.to_be_bytes(), content.to_be_bytes()].concat();
                let (addresses, rest) = packet.bytes.split_at(ADDRESSES_BYTES);
                pcapng::packet(&mut self.bytes, t_ns, [addresses, &tag, rest], packet.length + TAG_BYTES, direction);
            }
            _ => pcapng::packet(&mut self.bytes, t_ns, [packet.bytes, &[], &[]], packet.length, direction),
        }
        self.packets += 1;
    }
}
