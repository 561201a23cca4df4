//! Sessions: programs that somebody outside started, with their standard streams, while a run goes on.
//!
//! The problem. The bytes of a session must pass between a program and the world outside, all of them, in order, in both
//! directions, at the pace of whoever is slower. The channel cannot carry them: it is for short messages about a run, and
//! one program's output must never delay these. A file in the run directory is no pipe either: the guest caches what it
//! has read, and knows nothing of what the host appends.
//!
//! The way. A second serial line carries frames (`streams/frames.rs`) of all sessions. A line is a byte pipe that neither loses nor
//! reorders and pushes back when the other side does not read, but it is one for all: were it pushed back because the
//! reader of one stream rests, all would rest. So each stream has a window. Who receives grants so many bytes, and who
//! sends never sends more than was granted; what was granted is always read off the line at once, and room for it is kept.
//! A stream that nobody reads thus stops its own program, at its own pipe, and nothing else.
//!
//! ```text
//! program ── pipe or pseudo-terminal ── agent ══ frames of all sessions, /dev/ttyS1 ══ host ── file, pipe, terminal
//!         blocks when full          reads what was granted               grants what was written
//! ```
//!
//! Toward the guest the line as a whole has a window too, for it may never be pushed back: when the reader of a terminal
//! is behind by 3,968 bytes the kernel tells its driver to pause, and User-Mode Linux's driver (arch/um/drivers/line.c)
//! then stops to watch its file and never begins again. So the host keeps to 3,072 bytes, which are granted anew once
//! they were read, as session 0.
//!
//! A terminal of a node is opened in the node's own /dev/pts, so that programs there find it by its name. What is left in a
//! program's pipes when it ends is sent before its end is told; what its children write later goes nowhere.

mod frames;
mod session;

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

use crate::channel::protocol::End;
use crate::error::{Doing, Error, Result};
use crate::node::orders::{send, Job, Order};
use crate::node::spawn::NOT_EXECUTABLE;
use crate::node::Handle;
use crate::streams::frames::{put, take, Frame, Kind};
use crate::streams::session::{Request, Session, OUTPUTS, STDIN};

/// The serial line that carries the frames.
const TTY: &str = "/dev/ttyS1";
/// The most bytes of a program's output in one frame.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bytes that wait for the line, beyond which no output is read.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of standard input that the agent keeps for a program which does not read.
const INPUT_WINDOW_BYTES: u32 = 64 * 1024;
/// The session that stands for the line.
const LINE: u32 = 0;
const LINE_TOKEN: u64 = u64::MAX;

/// All sessions of a guest, and the line to the host.
pub struct Streams {
    line: File,
    epoll: Epoll,
    line_watch: EpollFlags,
    received: Vec<u8>,
    unsent: Vec<u8>,
    sessions: BTreeMap<u32, Session>,
}

impl Streams {
    /// Opens the line.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn open() -> Result<Self> {
        let doing = || format!("open {TTY}");
        let flags = libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        let line = OpenOptions::new().read(true).write(true).custom_flags(flags).open(TTY).doing(doing)?;
        let mut settings = tcgetattr(&line).doing(doing)?;
        cfmakeraw(&mut settings);
        tcsetattr(&line, SetArg::TCSANOW, &settings).doing(doing)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let line_watch = EpollFlags::EPOLLIN;
        epoll.add(&line, EpollEvent::new(line_watch, LINE_TOKEN)).doing(doing)?;
        Ok(Self { line, epoll, line_watch, received: Vec::new(), unsent: Vec::new(), sessions: BTreeMap::new() })
    }

    /// Does what can be done without waiting; to be called when the descriptor of `self` is readable.
    ///
    /// # Errors
    /// The line or a node fails, or the host sends what is no frame.
    pub fn serve(&mut self, nodes: &HashMap<String, Handle>) -> Result<()> {
        let mut ready = [EpollEvent::empty(); 16];
        let count = match self.epoll.wait(&mut ready, EpollTimeout::ZERO) {
            Err(Errno::EINTR) => 0,
            result => result.doing(|| "wait for streams".to_owned())?,
        };
        for event in &ready[..count] {
            if event.data() != LINE_TOKEN {
                self.pump((event.data() >> 2) as u32, (event.data() & 3) as usize);
            } else if event.events().contains(EpollFlags::EPOLLIN) {
                self.fill(nodes)?;
            }
        }
        self.flush()
    }

    /// Tells the host that a session's program could not be executed.
    ///
    /// # Errors
    /// The line fails.
    pub fn on_failure(&mut self, session: u32, status: i32, reason: &str) -> Result<()> {
        self.sessions.remove(&session);
        let payload = [&(status as u32).to_le_bytes(), reason.as_bytes()].concat();
        put(&mut self.unsent, session, Kind::Failed, 0, &payload);
        self.flush()
    }

    /// Tells the host that a session's program ended, after what it left in its pipes.
    ///
    /// # Errors
    /// The line fails.
    pub fn on_end(&mut self, session: u32, end: End) -> Result<()> {
        if let Some(mut ended) = self.sessions.remove(&session) {
            for stream in OUTPUTS {
                while let Ok(Some(bytes)) = ended.read(stream, CHUNK_BYTES) {
                    put(&mut self.unsent, session, Kind::Data, stream as u8, &bytes);
                }
            }
        }
        let (status, signal) = match end {
            End::Status(status) => (status as u32, 0),
            End::Signal(signal) => (0, signal as u32),
        };
        let payload = [status.to_le_bytes(), signal.to_le_bytes()].concat();
        put(&mut self.unsent, session, Kind::Exited, 0, &payload);
        self.flush()
    }

    fn fill(&mut self, nodes: &HashMap<String, Handle>) -> Result<()> {
        let mut bytes = [0; 4096];
        match self.line.read(&mut bytes) {
            Ok(0) => return Err(Error::new("the stream line was closed")),
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                put(&mut self.unsent, LINE, Kind::Grant, STDIN as u8, &(count as u32).to_le_bytes());
            }
            Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(cause) => return Err(cause).doing(|| "read the stream line".to_owned()),
        }
        while let Some(frame) = take(&mut self.received)? {
            self.obey(&frame, nodes)?;
        }
        Ok(())
    }

    fn obey(&mut self, frame: &Frame, nodes: &HashMap<String, Handle>) -> Result<()> {
        if frame.kind == Kind::Open {
            return self.begin(frame, nodes);
        }
        // It may have ended a moment ago; the host hears of that by itself.
        let Some(session) = self.sessions.get_mut(&frame.session) else { return Ok(()) };
        match frame.kind {
            Kind::Data => session.keep_input(&frame.payload),
            Kind::Grant => session.grant(usize::from(frame.stream), frame.numbers::<1>()?[0]),
            Kind::Close => session.close(usize::from(frame.stream)),
            Kind::Size => session.resize(frame.numbers()?)?,
            Kind::Signal => {
                let [signal] = frame.numbers()?;
                let order = Order::Signal { job: Job::Session(frame.session), signal: signal as i32 };
                send(&nodes[session.node()].socket, &order, &[])?;
            }
            Kind::Open | Kind::Failed | Kind::Exited => return Err(Error::new("the stream line is garbled")),
        }
        self.pump(frame.session, STDIN);
        Ok(())
    }

    /// Opens the streams of a new session, and orders its node to execute its program.
    fn begin(&mut self, frame: &Frame, nodes: &HashMap<String, Handle>) -> Result<()> {
        let request = Request::parse(&frame.payload)?;
        let Some(node) = nodes.get(&request.node) else {
            return self.on_failure(frame.session, NOT_EXECUTABLE, &format!("there is no node {}", request.node));
        };
        if node.is_off.get() {
            return self.on_failure(frame.session, NOT_EXECUTABLE, &format!("node {} is off", request.node));
        }
        let (session, order) = match Session::begin(&request, node) {
            Ok(begun) => begun,
            // Programs of the node may have taken its terminals away; that is no reason to end the run.
            Err(error) => return self.on_failure(frame.session, NOT_EXECUTABLE, &error.to_string()),
        };
        let order_files: Vec<_> = order.iter().map(AsRawFd::as_raw_fd).collect();
        let open = Order::Open { session: frame.session, terminal: request.terminal.is_some() };
        send(&node.socket, &open, &order_files)?;
        self.sessions.insert(frame.session, session);
        put(&mut self.unsent, frame.session, Kind::Grant, STDIN as u8, &INPUT_WINDOW_BYTES.to_le_bytes());
        Ok(())
    }

    /// Moves what can be moved on one stream of a session.
    fn pump(&mut self, number: u32, stream: usize) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if stream == STDIN {
            match session.write_input() {
                Ok(0) => {}
                Ok(count) => put(&mut self.unsent, number, Kind::Grant, STDIN as u8, &count.to_le_bytes()),
                Err(_) => put(&mut self.unsent, number, Kind::Close, STDIN as u8, &[]),
            }
        } else if self.unsent.len() < UNSENT_BYTES_MAX {
            match session.read(stream, CHUNK_BYTES.min(session.granted(stream))) {
                Ok(Some(bytes)) => put(&mut self.unsent, number, Kind::Data, stream as u8, &bytes),
                Ok(None) => {}
                Err(_) => put(&mut self.unsent, number, Kind::Close, stream as u8, &[]),
            }
        }
    }

    /// Sends what the line takes, and watches from now on for what can go on then.
    fn flush(&mut self) -> Result<()> {
        while !self.unsent.is_empty() {
            match self.line.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
                Err(cause) => return Err(cause).doing(|| "write to the stream line".to_owned()),
            }
        }
        let doing = || "watch streams".to_owned();
        let wanted =
            if self.unsent.is_empty() { EpollFlags::EPOLLIN } else { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT };
        if wanted != self.line_watch {
            self.epoll.modify(&self.line, &mut EpollEvent::new(wanted, LINE_TOKEN)).doing(doing)?;
            self.line_watch = wanted;
        }
        let has_room = self.unsent.len() < UNSENT_BYTES_MAX;
        for (number, session) in &mut self.sessions {
            session.watch(&self.epoll, u64::from(*number) << 2, has_room).doing(doing)?;
        }
        Ok(())
    }
}

impl AsFd for Streams {
    /// Readable when [`Streams::serve`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
