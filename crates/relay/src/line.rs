//! A connection between a machine and the hub: encrypted, both ends know the run's key, and never silent for long.
//!
//! Noise (noiseprotocol.org, pattern NN with a pre-shared key) encrypts and authenticates with a key that is made for the
//! run and told to nobody else; who does not have it gets no further than the handshake, and nothing is answered to it.
//! Records are of 64 KiB at most, a message goes over as many as it takes; what frames carry goes behind them, as it was
//! sealed already (`seal.rs`). Each end says something ten times a
//! second, so that one that hears nothing for long knows that the other, or what is between them, is gone (`patient.rs`). A
//! stall that is shorter than that only takes host time.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::iter;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use snow::{Builder, HandshakeState, StatelessTransportState};

use crate::patient::{silence_max, Patient, BEAT};

/// Of the run, known to its machines alone.
pub type Key = [u8; 32];

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";

/// How long it may take to connect, and then to agree on keys. Nobody says anything in between, so each of its two steps may
/// come to stand still for three seconds.
pub const JOINING_MAX: Duration = Duration::from_secs(8);

const RECORD_BYTES_MAX: usize = 65_535;
const TAG_BYTES: usize = 16;

/// Before a message: its kind, its length, and that of what is sealed already.
const HEAD_BYTES: usize = 17;

/// A message that goes into one record with its head.
const SHORT_BYTES_MAX: usize = 4096;

/// A message that is longer is none.
const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing, but somebody is there.
    Beat,
    /// The number of the machine that has connected: its first message.
    Hello,
    /// Between whoever started the hub and whoever started the machine's relay.
    Control,
    /// News of a machine, or tidings for it.
    News,
}

impl Kind {
    fn of(byte: u8) -> io::Result<Self> {
        [Self::Beat, Self::Hello, Self::Control, Self::News]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
            .ok_or_else(|| invalid("a message of no kind"))
    }
}

/// An error of what came over a line.
pub fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// What is sent, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// What it says, which the line encrypts.
    pub bytes: Vec<u8>,
    /// What is behind it, and sealed already.
    pub sealed: Vec<u8>,
}

impl Message {
    /// One with nothing behind it.
    pub const fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        Self { kind, bytes, sealed: vec![] }
    }
}

/// The end of a line at which messages go in, each as whoever has something to say comes to it: to hand them to a thread that
/// sends them would cost a switch for each, and for machines that wait for each other that is what a lookahead takes.
pub struct Outlet {
    stream: TcpStream,
    transport: Arc<StatelessTransportState>,
    sealing: Mutex<Sealing>,
}

/// What whoever sends has for itself.
struct Sealing {
    nonce: u64,
    record: Vec<u8>,
}

/// The end of a line at which messages come out.
pub struct Inbox {
    stream: BufReader<Patient<TcpStream>>,
    transport: Arc<StatelessTransportState>,
    nonce: u64,
    record: Vec<u8>,
}

/// Makes a line of a connection; the one that has connected speaks first.
///
/// # Errors
/// The other end does not have the key, or is not done with the handshake in time.
pub fn open(mut stream: TcpStream, key: &Key, speaks_first: bool) -> io::Result<(Inbox, Outlet)> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(silence_max()))?;
    let deadline = Instant::now() + JOINING_MAX;
    let builder = Builder::new(PATTERN.parse().expect("a pattern")).psk(0, key);
    let mut handshake = if speaks_first { builder.build_initiator() } else { builder.build_responder() }
        .map_err(|error| io::Error::other(error.to_string()))?;
    let mut speaks = speaks_first;
    while !handshake.is_handshake_finished() {
        if speaks {
            write_handshake(&mut stream, &mut handshake)?;
        } else {
            read_handshake(&mut stream, &mut handshake, deadline)?;
        }
        speaks = !speaks;
    }
    let transport = handshake.into_stateless_transport_mode().map_err(|error| io::Error::other(error.to_string()))?;
    let transport = Arc::new(transport);
    stream.set_read_timeout(Some(BEAT))?;
    let sealing = Mutex::new(Sealing { nonce: 0, record: vec![0; 2 + RECORD_BYTES_MAX] });
    let outlet = Outlet { stream: stream.try_clone()?, transport: Arc::clone(&transport), sealing };
    let record = vec![0; RECORD_BYTES_MAX];
    Ok((Inbox { stream: BufReader::new(Patient(stream)), transport, nonce: 0, record }, outlet))
}

fn write_handshake(stream: &mut TcpStream, handshake: &mut HandshakeState) -> io::Result<()> {
    let mut record = [0; 256];
    let length = handshake.write_message(&[], &mut record).map_err(|_| invalid("no handshake"))?;
    stream.write_all(&(length as u16).to_be_bytes())?;
    stream.write_all(&record[..length])
}

fn read_handshake(stream: &mut TcpStream, handshake: &mut HandshakeState, deadline: Instant) -> io::Result<()> {
    let mut record = [0; 256];
    let mut length = [0; 2];
    read_by(stream, &mut length, deadline)?;
    let record = record.get_mut(..usize::from(u16::from_be_bytes(length))).ok_or_else(|| invalid("no handshake"))?;
    read_by(stream, record, deadline)?;
    handshake.read_message(record, &mut [0; 256]).map_err(|_| invalid("the other end does not have the run's key"))?;
    Ok(())
}

/// Reads all of it by an instant: who sends a byte now and then would be waited for long otherwise.
fn read_by(stream: &mut TcpStream, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let what = format!("no keys were agreed on within {} seconds", JOINING_MAX.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, what));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it ended before keys were agreed on")),
            Ok(length) => bytes = &mut bytes[length..],
            // When it is over, it is seen above.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(explained(&error)),
        }
    }
    Ok(())
}

impl Outlet {
    /// Sends a message; waits while the line is full.
    ///
    /// # Errors
    /// The line has ended, which whoever reads notices, too.
    pub fn send(&self, message: &Message) -> io::Result<()> {
        let mut sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&mut sealing, message).map_err(|error| {
            self.end();
            explained(&error)
        })
    }

    fn write(&self, Sealing { nonce, record }: &mut Sealing, message: &Message) -> io::Result<()> {
        let (mut stream, Message { kind, bytes, sealed }) = (&self.stream, message);
        let mut head = [*kind as u8; HEAD_BYTES];
        head[1..9].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        head[9..].copy_from_slice(&(sealed.len() as u64).to_le_bytes());
        // A short message is one record with its head; of a long one the head is one by itself, which costs no copy of the rest.
        let (first, rest) = bytes.split_at(if bytes.len() <= SHORT_BYTES_MAX { bytes.len() } else { 0 });
        for part in iter::once(&[&head, first].concat()[..]).chain(rest.chunks(RECORD_BYTES_MAX - TAG_BYTES)) {
            let length = self
                .transport
                .write_message(*nonce, part, &mut record[2..])
                .map_err(|error| io::Error::other(error.to_string()))?;
            record[..2].copy_from_slice(&(length as u16).to_be_bytes());
            stream.write_all(&record[..2 + length])?;
            *nonce += 1;
        }
        stream.write_all(sealed)
    }

    /// Sends what `next` gives, which waits for so long at most, and a beat where that is nothing, until it never will be.
    pub fn serve(&self, mut next: impl FnMut(Duration) -> Result<Message, RecvTimeoutError>) {
        loop {
            let message = match next(BEAT) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => Message::new(Kind::Beat, vec![]),
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            };
            if self.send(&message).is_err() {
                return;
            }
        }
    }

    fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Inbox {
    /// The next message that is one.
    ///
    /// # Errors
    /// The line has ended, or was silent for too long, or what came was not said by who has the key.
    pub fn receive(&mut self) -> io::Result<Message> {
        loop {
            let message = self.next()?;
            if message.kind != Kind::Beat {
                return Ok(message);
            }
        }
    }

    fn next(&mut self) -> io::Result<Message> {
        let mut message = vec![];
        self.append_record(&mut message)?;
        let head = message.first_chunk::<HEAD_BYTES>().ok_or_else(|| invalid("a message without a head"))?;
        let kind = Kind::of(head[0])?;
        let [length, sealed_length] =
            [1, 9].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes")));
        if length.max(sealed_length) > MESSAGE_BYTES_MAX {
            return Err(invalid("a message that is too long"));
        }
        message.drain(..HEAD_BYTES);
        message.reserve(length as usize + TAG_BYTES);
        while message.len() < length as usize {
            self.append_record(&mut message)?;
        }
        let mut sealed = vec![0; sealed_length as usize];
        self.stream.read_exact(&mut sealed).map_err(|error| explained(&error))?;
        Ok(Message { kind, bytes: message, sealed })
    }

    /// Reads a record, and decrypts it where it belongs.
    fn append_record(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length).map_err(|error| explained(&error))?;
        let record = &mut self.record[..usize::from(u16::from_be_bytes(length))];
        self.stream.read_exact(record).map_err(|error| explained(&error))?;
        let begin = message.len();
        message.resize(begin + record.len(), 0);
        let length = self
            .transport
            .read_message(self.nonce, record, &mut message[begin..])
            .map_err(|_| invalid("what came was not encrypted with the run's key"))?;
        message.truncate(begin + length);
        self.nonce += 1;
        Ok(())
    }
}

fn explained(error: &io::Error) -> io::Error {
    let what = match error.kind() {
        ErrorKind::TimedOut => error.to_string(),
        ErrorKind::UnexpectedEof => "the connection has ended".to_owned(),
        _ => format!("the connection has ended: {error}"),
    };
    io::Error::new(error.kind(), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    type Line = io::Result<(Inbox, Outlet)>;

    fn connected(theirs: Key, ours: Key) -> (Line, Line) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = thread::spawn(move || open(TcpStream::connect(address).unwrap(), &theirs, true));
        let server = open(listener.accept().unwrap().0, &ours, false);
        (client.join().unwrap(), server)
    }

    #[test]
    fn messages_of_all_lengths_come_as_they_were_sent() {
        let (client, server) = connected([7; 32], [7; 32]);
        let ((_inbox, outlet), (mut inbox, _outlet)) = (client.unwrap(), server.unwrap());
        let lengths = [0, 1, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, 65_519, 65_520, 1_000_000];
        let made = |length: usize| (0..length).map(|at| (at * 31 + length) as u8).collect::<Vec<_>>();
        let message = move |length| Message { kind: Kind::News, bytes: made(length), sealed: made(length / 3 * 2) };
        let sending = thread::spawn(move || {
            for length in lengths {
                outlet.send(&message(length)).unwrap();
            }
            outlet
        });
        for length in lengths {
            assert!(inbox.receive().unwrap() == message(length), "{length}");
        }
        drop(sending.join().unwrap());
    }

    #[test]
    fn who_does_not_have_the_key_gets_no_further_than_the_handshake() {
        let (client, server) = connected([7; 32], [8; 32]);
        assert!(client.is_err());
        assert!(server.is_err());
    }

    #[test]
    fn a_record_that_was_changed_on_its_way_ends_the_line() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = thread::spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            let mut raw = stream.try_clone().unwrap();
            let line = open(stream, &[7; 32], true).unwrap();
            raw.write_all(&[0, 40]).unwrap();
            raw.write_all(&[9; 40]).unwrap();
            line
        });
        let (mut inbox, _outlet) = open(listener.accept().unwrap().0, &[7; 32], false).unwrap();
        let _line = client.join().unwrap();
        assert_eq!(inbox.receive().unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_line_on_which_nothing_comes_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silent = TcpStream::connect(address).unwrap();
        let error = open(listener.accept().unwrap().0, &[7; 32], false).err().unwrap();
        assert_eq!(error.to_string(), "no keys were agreed on within 8 seconds");
        drop(silent);
    }

    #[test]
    fn who_sends_a_byte_now_and_then_is_given_up_as_soon_as_who_sends_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let dripping = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&[0, 200]).unwrap();
            let mut dripped = 0;
            while stream.write_all(&[7]).is_ok() && dripped < 100 {
                thread::sleep(JOINING_MAX / 8);
                dripped += 1;
            }
            dripped
        });
        let error = open(listener.accept().unwrap().0, &[7; 32], false).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(dripping.join().unwrap() < 20);
    }
}
