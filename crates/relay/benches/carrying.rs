//! What relays and the hub carry over loopback, encrypted: `cargo bench -p relay --bench carrying -- [frames] [machines]`.
//!
//! Threads on the memory of machines do as guests do that have nothing else to do; between them are the relays and the hub as a
//! run starts them. Frames go over two connections, since all goes by way of the hub. The second table says what it costs
//! machines to wait for each other.

#![allow(clippy::cast_precision_loss)] // figures that are shown

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use wire::testing::{divide, laid_out_in};
use wire::{Guest, Received, Wire, NEVER};

const DELAY_NS: u64 = 5_000_000;

const NOBODY: u32 = u32::MAX;
const CONTROL: u32 = 0;
const LISTENS: u32 = 1;
const JOINED: u32 = 2;
const LAYOUT: u32 = 4;

/// A relay as who starts it sees it.
struct Relay(Child);

impl Relay {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dilaton-relay"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut relay = Self(command.spawn().unwrap());
        relay.0.stdin.as_mut().unwrap().write_all(&[7; 32]).unwrap();
        relay
    }

    fn tell(&mut self, machine: u32, what: u32, bytes: &[u8]) {
        let numbers = [machine, what, bytes.len() as u32].map(u32::to_le_bytes).concat();
        self.0.stdin.as_mut().unwrap().write_all(&[&numbers, bytes].concat()).unwrap();
    }

    fn hear(&mut self, what: u32) -> Vec<u8> {
        let stdout = self.0.stdout.as_mut().unwrap();
        let mut header = [0; 12];
        stdout.read_exact(&mut header).unwrap();
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut bytes = vec![0; number(8) as usize];
        stdout.read_exact(&mut bytes).unwrap();
        assert_eq!(number(4), what, "{}", String::from_utf8_lossy(&bytes));
        bytes
    }

    /// From now on it has nothing to say but why it cannot go on.
    fn watch(&mut self) {
        let mut stdout = self.0.stdout.take().unwrap();
        thread::spawn(move || {
            let mut said = [0; 200];
            let length = stdout.read(&mut said).unwrap();
            assert!(length == 0, "{}", String::from_utf8_lossy(&said[..length]));
        });
    }

    /// Ends it; the CPU time that it took, seconds.
    fn end(mut self) -> f64 {
        drop(self.0.stdin.take());
        let mut status = 0;
        // SAFETY: a plain system call, which writes into `status` and `usage`; nobody else waits for this child.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::wait4(self.0.id() as libc::pid_t, &mut status, 0, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}

/// Machines of a guest each in a ring, with the hub between them, as a run starts them.
struct Ring {
    wires: Vec<Wire>,
    relays: Vec<Relay>,
    hub: Relay,
}

impl Ring {
    fn start(machines: usize, ring_bytes: usize) -> Self {
        let homes: Vec<usize> = (0..machines).collect();
        let next = |guest: usize| (guest + 1) % machines;
        let ways: Vec<_> =
            homes.iter().flat_map(|&guest| [(guest, next(guest), DELAY_NS), (next(guest), guest, DELAY_NS)]).collect();
        let mut hub = Relay::start(&["hub", "127.0.0.1:0"]);
        let address = hub.hear(LISTENS);
        let mut layout = vec![machines as u64];
        layout.extend(homes.iter().map(|&home| home as u64));
        layout.extend(ways.iter().flat_map(|&(from, to, _)| [from as u64, to as u64]));
        hub.tell(NOBODY, LAYOUT, &layout.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        let (wires, relays) = homes
            .iter()
            .map(|&home| {
                // SAFETY: a plain system call.
                let fd = unsafe { libc::memfd_create(c"wire".as_ptr(), 0) };
                let wire = laid_out_in(Some(fd), machines, &ways, ring_bytes);
                divide(&wire, home, &homes);
                let mut relay = Relay::start(&["machine", &fd.to_string()]);
                relay.tell(home as u32, CONTROL, &address);
                hub.hear(JOINED);
                relay.tell(home as u32, LAYOUT, &[]);
                // Who hears this knows that its memory is laid out.
                relay.tell(home as u32, CONTROL, &[]);
                hub.hear(CONTROL);
                relay.watch();
                // SAFETY: ours, mapped by now, and inherited.
                unsafe { libc::close(fd) };
                (wire, relay)
            })
            .unzip();
        Self { wires, relays, hub }
    }

    /// Ends it; the CPU time of its relays, and that of the hub, seconds.
    fn end(self) -> (f64, f64) {
        let relays_s = self.relays.into_iter().map(Relay::end).sum();
        assert!(self.wires.iter().all(|wire| (0..wire.ways()).all(|way| wire.way(way).frames_late.load(Relaxed) == 0)));
        (relays_s, self.hub.end())
    }
}

fn wait(guest: &Guest) {
    loop {
        let watched = guest.watch();
        if guest.may_run() {
            return;
        }
        guest.sleep(watched, None);
    }
}

/// Sends so many frames, one every `gap_ns`.
fn send(wire: &Wire, frames: u64, gap_ns: u64, bytes: usize) {
    let guest = Guest::new(wire.clone(), 0).unwrap();
    let mut frame = vec![7_u8; bytes];
    let part = [libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: bytes }];
    let mut told_ns = 0;
    for now_ns in (0..frames).map(|number| number * gap_ns) {
        if now_ns >= guest.horizon_ns() && !guest.pass(now_ns) {
            wait(&guest);
        } else if now_ns >= told_ns + guest.step_ns() {
            guest.tell(now_ns);
            told_ns = now_ns;
        }
        // SAFETY: the part is ours, and so is the way.
        unsafe { guest.send(wire.way(0), now_ns, &part) }.unwrap();
    }
    guest.leave();
}

/// Takes frames at their arrivals until there are so many.
fn receive(wire: &Wire, frames: u64, bytes: usize) {
    let guest = Guest::new(wire.clone(), 1).unwrap();
    let mut frame = vec![0_u8; bytes];
    let part = [libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: bytes }];
    let mut taken = 0;
    while taken < frames {
        let now_ns = guest.first_arrival_ns();
        if now_ns >= guest.horizon_ns() {
            if !guest.pass(NEVER) {
                wait(&guest);
            }
            continue;
        }
        // SAFETY: as above.
        match unsafe { wire.receive(wire.way(0), now_ns, &part) } {
            Received::Frame { length, .. } => assert_eq!(length, bytes),
            received => panic!("{received:?}"),
        }
        taken += 1;
    }
    guest.leave();
}

/// Frames from a machine to another.
fn carry(name: &str, frames: u64, gap_ns: u64, bytes: usize) {
    let ring = Ring::start(2, 1 << 27);
    let begin = Instant::now();
    let [sending, receiving] = [0, 1].map(|home: usize| ring.wires[home].clone());
    let sender = thread::spawn(move || send(&sending, frames, gap_ns, bytes));
    receive(&receiving, frames, bytes);
    sender.join().unwrap();
    let host_s = begin.elapsed().as_secs_f64();
    let (relays_s, hub_s) = ring.end();
    println!(
        "| {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
        frames as f64 / host_s,
        (frames * bytes as u64 * 8) as f64 / host_s / 1e9,
        relays_s / frames as f64 * 1e6,
        hub_s / frames as f64 * 1e6,
    );
}

/// Machines that do nothing but go on as far as they may, as those do whose guests all compute.
fn agree(machines: usize, lookaheads: u64) {
    let ring = Ring::start(machines, 1 << 12);
    let begin = Instant::now();
    let threads: Vec<_> = (0..machines)
        .map(|home| {
            let guest = Guest::new(ring.wires[home].clone(), home).unwrap();
            thread::spawn(move || {
                let mut now_ns = 0;
                while now_ns < lookaheads * DELAY_NS {
                    if !guest.go_on(now_ns) {
                        wait(&guest);
                    }
                    now_ns = guest.horizon_ns().min(lookaheads * DELAY_NS);
                }
                guest.leave();
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let host_s = begin.elapsed().as_secs_f64();
    let (relays_s, hub_s) = ring.end();
    let us = |seconds: f64| seconds / lookaheads as f64 * 1e6;
    println!("| {machines} | {:.0} | {:.0} | {:.0} |", us(host_s), us(relays_s) / machines as f64, us(hub_s));
}

fn frames() {
    println!(
        "| frames of | frames/s | Gbit/s | us of CPU a frame in both relays | in the hub |\n| --- | --- | --- | --- | --- |"
    );
    carry("64 bytes", 2_000_000, 5_000, 64);
    carry("1,514 bytes", 1_000_000, 5_000, 1514);
    carry("64 KiB, as with offload", 50_000, 50_000, 65_000);
}

fn machines() {
    println!("| machines | us a lookahead | of CPU in a relay | in the hub |\n| --- | --- | --- | --- |");
    for machines in [2, 4, 8, 16, 32, 64] {
        agree(machines, 20_000 / machines as u64);
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, part) in [("frames", frames as fn()), ("machines", machines)] {
        if wanted.is_empty() || wanted.iter().any(|each| each == name) {
            part();
        }
    }
}
