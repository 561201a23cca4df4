//! What carries frames and instants between the machines of a run, and what their host agents say.
//!
//! ```text
//! message.rs   frames and words as bytes
//! carrier.rs   the side of a machine: out of its memory and into it
//! hub.rs       the side of the hub, which puts what all tell into one order
//! line.rs      an encrypted connection
//! patient.rs   how long the other end of one is waited for
//! outbox.rs    what waits to be sent over one
//! seal.rs      what frames carry, from machine to machine
//! pipes.rs     the standard streams
//! ```
//!
//! `dilaton-relay hub ADDRESS` is started by who conducts a run, `dilaton-relay machine FD` by the host agent of each
//! machine, with the memory that its guests share. The key comes first on the standard input: it is in no argument, no
//! environment and no file. A relay ends when its standard input or its line does, and so when anything of the run does.
//!
//! `dilaton-relay guard PID` is started by a host agent before it does anything, long before there is a relay: an agent that is
//! stopped does not see that its standard input has ended. What sees it is this process.

mod carrier;
mod hub;
mod line;
#[cfg(test)]
#[path = "../../wire/src/lives.rs"]
mod lives;
mod message;
mod outbox;
mod patient;
mod pipes;
mod seal;
#[cfg(test)]
mod stress;

use std::collections::HashMap;
use std::io::{self, Read, Stdin};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::process::exit;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use carrier::Carrier;
use hub::{Hub, Layout};
use line::{invalid, Key, Kind, Message, Outlet, JOINING_MAX};
use outbox::{Outbox, Refusal};
use pipes::{say, what, NOBODY};
#[cfg(test)]
use wire::{Guest, Received, Wire};

/// What may wait for a machine in the hub, bytes. The rings of the machine have room for what is under way to it, which is
/// less unless they are of hundreds of links; it is as long a message as one may be.
const WAITING_BYTES_MAX: usize = 1 << 30;

/// How long an agent takes to end, once it is told that its machine is lost or nobody conducts it any more, which takes
/// milliseconds; one that does not was stopped by somebody. Then it is killed, and so what is below it ends, which nobody
/// else on its machine would do.
const AGENT_END_MAX: Duration = Duration::from_secs(3);

/// Connections of which the key is not known yet, at most: more are refused.
const STRANGERS_MAX: usize = 64;

const USAGE: &str =
    "usage: dilaton-relay hub ADDRESS | dilaton-relay machine FD | dilaton-relay guard PID\n\nStarted by Dilaton; see docs/cluster.md.";

fn main() {
    // A relay that is stopped does not see that its standard input has ended.
    // SAFETY: a plain system call; who ended before it is seen at the standard input.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // Messages of megabytes come and go: to get their memory from the system each time would cost as much as to encrypt them.
    // SAFETY: plain calls of the C library, before there are other threads.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
    // A thread that ended alone would leave the others waiting for ever.
    std::panic::set_hook(Box::new(|panic| {
        let _ = say(NOBODY, what::GONE, panic.to_string().as_bytes());
        exit(1);
    }));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["hub", address] => serve(address),
        ["machine", fd] => carry(fd),
        ["guard", agent] => guard(agent),
        _ => {
            eprintln!("{USAGE}");
            exit(2);
        }
    };
    if let Err(error) = result {
        // Who has started it may be gone.
        let _ = say(NOBODY, what::GONE, error.to_string().as_bytes());
        exit(1);
    }
    exit(0);
}

fn read_key(stdin: &mut Stdin) -> io::Result<Key> {
    let mut key = [0; 32];
    stdin.read_exact(&mut key)?;
    Ok(key)
}

/// What the threads of the hub share.
struct Shared {
    key: Key,
    hub: Mutex<Option<Hub>>,
    /// To machines what waits is kept, here or in the hub: one that stands still for a moment must not hold up the others. No
    /// guest runs far beyond one that does, so only one that takes less than it is sent has too much waiting; then it is given
    /// up. Tidings are not in here but when it is their turn, without what they say ([`tidings`]).
    lines: Mutex<HashMap<u32, Outbox<Kind>>>,
    strangers: Mutex<usize>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(address: &str) -> io::Result<()> {
    let mut stdin = io::stdin();
    let key = read_key(&mut stdin)?;
    let listener = TcpListener::bind(address)?;
    say(NOBODY, what::LISTENS, listener.local_addr()?.to_string().as_bytes())?;
    let (lines, strangers) = (Mutex::new(HashMap::new()), Mutex::new(0));
    let shared = Arc::new(Shared { key, hub: Mutex::new(None), lines, strangers });
    let accepting = Arc::clone(&shared);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut strangers = locked(&accepting.strangers);
            if *strangers < STRANGERS_MAX {
                *strangers += 1;
                let shared = Arc::clone(&accepting);
                thread::spawn(move || welcome(&shared, stream));
            }
        }
    });
    while let Some(message) = pipes::read(&mut stdin)? {
        match message.what {
            what::LAYOUT => *locked(&shared.hub) = Some(Hub::new(layout(&message.bytes)?)),
            what::CONTROL => {
                send(&mut locked(&shared.lines), message.machine, (Kind::Control, message.bytes));
            }
            _ => return Err(invalid("a message of no kind")),
        }
    }
    Ok(())
}

/// Numbers of eight bytes: how many guests, the machine of each, and sender and receiver of each way.
fn layout(bytes: &[u8]) -> io::Result<Layout> {
    let numbers: Vec<usize> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes")) as usize)
        .collect();
    let split = numbers.split_first().filter(|(guests, rest)| **guests <= rest.len());
    let (&guests, rest) = split.ok_or_else(|| invalid("no layout"))?;
    let (homes, ends) = rest.split_at(guests);
    if ends.iter().any(|&guest| guest >= guests) {
        return Err(invalid("a way to no guest"));
    }
    Ok(Layout { homes: homes.to_vec(), ways: ends.chunks_exact(2).map(|way| (way[0], way[1])).collect() })
}

/// A connection, until it ends.
fn welcome(shared: &Arc<Shared>, stream: TcpStream) {
    let (outbox, messages) = Outbox::new(WAITING_BYTES_MAX);
    let number = Arc::new(OnceLock::new());
    let (asked, whose) = (Arc::clone(shared), Arc::clone(&number));
    let next = move |patience| match (messages.next(patience)?, whose.get()) {
        ((Kind::News, _), Some(&machine)) => Ok(tidings(&asked, machine)),
        ((kind, bytes), _) => Ok(Message::new(kind, bytes)),
    };
    let opened = line::open(stream, &shared.key, false).and_then(|(mut inbox, outlet)| {
        thread::spawn(move || outlet.serve(next));
        match inbox.receive()? {
            Message { kind: Kind::Hello, bytes, .. } => {
                let machine = u32::from_le_bytes(bytes.try_into().map_err(|_| invalid("no number"))?);
                let _ = number.set(machine);
                Ok((inbox, machine))
            }
            _ => Err(invalid("not a hello")),
        }
    });
    *locked(&shared.strangers) -= 1;
    let Ok((mut inbox, machine)) = opened else { return };
    {
        let mut lines = locked(&shared.lines);
        if lines.contains_key(&machine) {
            return;
        }
        lines.insert(machine, outbox);
    }
    let mut go_on = || -> io::Result<()> {
        say(machine, what::JOINED, &[])?;
        loop {
            match inbox.receive()? {
                Message { kind: Kind::Control, bytes, .. } => say(machine, what::CONTROL, &bytes)?,
                Message { kind: Kind::News, bytes, sealed } => take(shared, machine, &bytes, sealed)?,
                _ => return Err(invalid("it said what no machine says")),
            }
        }
    };
    let error = go_on().err().map_or_else(String::new, |error| error.to_string());
    let _ = say(machine, what::GONE, error.as_bytes());
}

/// Takes the news of a machine, and has those told for whom there is something.
fn take(shared: &Shared, machine: u32, news: &[u8], sealed: Vec<u8>) -> io::Result<()> {
    let mut hub = locked(&shared.hub);
    let hub = hub.as_mut().ok_or_else(|| invalid("it told news before the run began"))?;
    let due = hub.take(machine as usize, news, sealed).map_err(|_| invalid("it told what cannot be"))?;
    let mut lines = locked(&shared.lines);
    for machine in due {
        send(&mut lines, machine as u32, (Kind::News, vec![]));
    }
    for machine in hub.overfull(WAITING_BYTES_MAX) {
        give_up(&mut lines, machine as u32, hub.tidings(machine).map_or(0, |(_, sealed)| sealed.len()));
    }
    Ok(())
}

/// What there is to tell a machine whose turn it is.
fn tidings(shared: &Shared, machine: u32) -> Message {
    let found = locked(&shared.hub).as_mut().and_then(|hub| hub.tidings(machine as usize));
    let (kind, (bytes, sealed)) = found.map_or((Kind::Beat, (vec![], vec![])), |tidings| (Kind::News, tidings));
    Message { kind, bytes, sealed }
}

/// Sends a machine something. Who is gone hears nothing, which was said; whose outbox is full is gone.
fn send(lines: &mut HashMap<u32, Outbox<Kind>>, machine: u32, message: (Kind, Vec<u8>)) {
    if let Some(Err(Refusal::Full(bytes))) = lines.get(&machine).map(|line| line.send(message)) {
        give_up(lines, machine, bytes);
    }
}

/// Ends the line of a machine for which so many bytes wait.
fn give_up(lines: &mut HashMap<u32, Outbox<Kind>>, machine: u32, bytes: usize) {
    if lines.remove(&machine).is_some() {
        let why = format!("it takes less than it is sent, of which {bytes} bytes wait");
        let _ = say(machine, what::GONE, why.as_bytes());
    }
}

fn carry(fd: &str) -> io::Result<()> {
    let fd = fd.parse().map_err(|_| invalid("not a file descriptor"))?;
    let mut stdin = io::stdin();
    let key = read_key(&mut stdin)?;
    let hello = pipes::read(&mut stdin)?.ok_or_else(|| invalid("nobody said where the hub is"))?;
    let address = String::from_utf8_lossy(&hello.bytes).into_owned();
    let (mut inbox, outlet) = line::open(connect(&address)?, &key, true)?;
    let outlet = Arc::new(outlet);
    outlet.send(&Message::new(Kind::Hello, hello.machine.to_le_bytes().to_vec()))?;
    let beating = Arc::clone(&outlet);
    thread::spawn(move || {
        beating.serve(|beat| {
            thread::sleep(beat);
            Err(RecvTimeoutError::Timeout)
        });
    });
    let carrier: Arc<Mutex<Option<Arc<Carrier>>>> = Arc::new(Mutex::new(None));
    let attached = Arc::clone(&carrier);
    thread::spawn(move || {
        let mut listen = || -> io::Result<()> {
            while let Some(message) = pipes::read(&mut stdin)? {
                if message.what == what::LAYOUT {
                    let carrier =
                        Carrier::new(&mapped(fd)?, key).map_err(|failure| io::Error::other(failure.to_string()))?;
                    let carrier = Arc::new(carrier);
                    *locked(&attached) = Some(Arc::clone(&carrier));
                    let outlet = Arc::clone(&outlet);
                    thread::spawn(move || tell(&carrier, &outlet));
                } else {
                    outlet.send(&Message::new(Kind::Control, message.bytes))?;
                }
            }
            Ok(())
        };
        if let Err(error) = listen() {
            let _ = say(NOBODY, what::GONE, error.to_string().as_bytes());
        }
        // Whoever started it has gone, and with it the machine's part of the run.
        exit(1);
    });
    let mut go_on = || -> io::Result<()> {
        loop {
            match inbox.receive()? {
                Message { kind: Kind::Control, bytes, .. } => say(hello.machine, what::CONTROL, &bytes)?,
                Message { kind: Kind::News, bytes, mut sealed } => {
                    let carrier =
                        locked(&carrier).clone().ok_or_else(|| invalid("tidings before the memory was laid out"))?;
                    carrier.take(&bytes, &mut sealed).map_err(|failure| io::Error::other(failure.to_string()))?;
                }
                _ => return Err(invalid("the hub said what it never says")),
            }
        }
    };
    let error = go_on().err().map_or_else(String::new, |error| error.to_string());
    // Who is stopped does not take it. Who takes it ends this process, by its standard input or as its parent.
    thread::spawn(move || say(NOBODY, what::GONE, error.as_bytes()));
    end_agent();
    Ok(())
}

/// Ends the agent of this machine unless it ends by itself, and so this process.
fn end_agent() {
    thread::sleep(AGENT_END_MAX);
    // SAFETY: plain system calls; our parent is the agent, or this process would have ended with it.
    unsafe { libc::kill(libc::getppid(), libc::SIGKILL) };
}

/// Waits until nobody holds the other end of the standard input, which is the agent's and stays its to read.
fn guard(agent: &str) -> io::Result<()> {
    let agent: libc::pid_t = agent.parse().map_err(|_| invalid("not a process"))?;
    // SAFETY: a plain system call.
    if unsafe { libc::getppid() } != agent {
        // It ended before its end was this process's.
        return Ok(());
    }
    let mut input = libc::pollfd { fd: 0, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: `input` is ours.
    while unsafe { libc::poll(&mut input, 1, -1) } < 0 {}
    end_agent();
    Ok(())
}

/// Tells the hub news as long as there is somebody to send them.
fn tell(carrier: &Carrier, outlet: &Outlet) {
    loop {
        let (bytes, sealed) = carrier.news().unwrap_or_else(|failure| {
            let _ = say(NOBODY, what::GONE, failure.to_string().as_bytes());
            exit(1);
        });
        if outlet.send(&Message { kind: Kind::News, bytes, sealed }).is_err() {
            return;
        }
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = invalid("no such address");
    for found in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&found, JOINING_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
        }
    }
    Err(last)
}

/// The memory that the guests of this machine share.
fn mapped(fd: i32) -> io::Result<wire::Wire> {
    // SAFETY: a new shared mapping of the whole file, which is never unmapped; the host has laid it out.
    unsafe {
        let length = libc::lseek(fd, 0, libc::SEEK_END).max(0) as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let address = libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0);
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        wire::Wire::at(address.cast(), length).map_err(|_| invalid("the memory is not that of a wire"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{write_block, written, Frame, Read};
    use crate::seal::TAG_BYTES;
    use wire::Word;

    /// Enough for whoever waits for nobody, however busy its machine is.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// More than a connection has room for.
    const NEWS: usize = 1024;

    #[test]
    fn a_line_on_which_nothing_goes_holds_up_no_other() {
        let layout = Layout { homes: vec![0, 1, 2], ways: vec![(0, 1), (0, 2)] };
        let (stalled, _kept) = Outbox::new(WAITING_BYTES_MAX);
        let (going, messages) = Outbox::new(WAITING_BYTES_MAX);
        let lines = Mutex::new(HashMap::from([(1, stalled), (2, going)]));
        let shared = Shared { key: [7; 32], hub: Mutex::new(Some(Hub::new(layout))), lines, strangers: Mutex::new(0) };
        let (done, is_done) = std::sync::mpsc::channel();
        thread::spawn(move || {
            // The hub looks through all that were not received each time.
            for number in 0..NEWS as u64 {
                let mut blocks = vec![];
                for way in [0, 1] {
                    let mut frame = vec![];
                    Frame { way, number, arrival_ns: number, length: 4 }.write(&mut frame);
                    write_block(&mut blocks, 1 + way, &frame);
                }
                let words = [(0, Word { next_ns: number, ..Word::FIRST })];
                take(&shared, 0, &written(blocks, 0, &words), vec![0; 2 * (4 + TAG_BYTES)]).unwrap();
            }
            done.send(shared).unwrap();
        });
        let shared = is_done.recv_timeout(PATIENCE).expect("nobody waits for the line that stands still");
        let turns = std::iter::from_fn(|| messages.next(Duration::ZERO).ok()).count();
        assert_eq!(turns, 1, "whose turn it is need not be told twice");
        let Message { kind, bytes, sealed } = tidings(&shared, 2);
        let mut read = Read::new(&bytes).unwrap();
        let blocks = std::iter::from_fn(|| read.block().unwrap()).count();
        assert_eq!((kind, blocks), (Kind::News, NEWS));
        assert_eq!(sealed.len(), NEWS * (4 + TAG_BYTES));
        assert_eq!(tidings(&shared, 2), Message::new(Kind::Beat, vec![]), "there is nothing more");
    }

    #[test]
    fn a_machine_that_takes_less_than_it_is_sent_is_given_up_and_no_other() {
        let (stalled, kept) = Outbox::new(100);
        let (going, messages) = Outbox::new(100);
        let mut lines = HashMap::from([(1, stalled), (2, going)]);
        for _ in 0..20 {
            send(&mut lines, 1, (Kind::Control, vec![0; 40]));
            send(&mut lines, 2, (Kind::Control, vec![0; 40]));
            messages.next(Duration::ZERO).unwrap();
        }
        assert_eq!(lines.keys().collect::<Vec<_>>(), [&2]);
        let taken = std::iter::from_fn(|| kept.next(Duration::ZERO).ok()).count();
        assert_eq!(taken, 2);
        assert_eq!(kept.next(Duration::ZERO).err(), Some(RecvTimeoutError::Disconnected), "its line comes to its end");
    }
}
