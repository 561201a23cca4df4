//! Seeing that a process is ready: a listening socket in its node, or a line of its output.

use std::fs::{read_to_string, File};
use std::io::Read;

use nix::unistd::Pid;
use regex_lite::Regex;

use crate::error::{Doing, Result};
use crate::plan::{Process, Ready};

/// `TCP_LISTEN` of the kernel's `net/tcp_states.h`, as /proc/net/tcp writes it.
const LISTEN: &str = "0A";

/// How often readiness is looked for, at most.
const INTERVAL_NS: i64 = 10_000_000;

/// A look takes a tenth of the time to the next one at most. It goes through all TCP sockets of the guest; many nodes that
/// wait on a slow CPU would have the agent look all the time, and those that are waited for would never come to the CPU.
const INTERVAL_OF_LOOKS: i64 = 10;

/// When to look for readiness after a look from `began_ns` to `ended_ns`.
pub fn next_look_ns(began_ns: i64, ended_ns: i64) -> i64 {
    began_ns + INTERVAL_NS.max((ended_ns - began_ns) * INTERVAL_OF_LOOKS)
}

/// What is looked at to see one process ready.
pub enum Probe {
    /// The TCP sockets of the node.
    Tcp {
        /// The init of the node.
        init: Pid,
        /// The port.
        port: u16,
    },
    /// The output as it grows.
    Output {
        /// What a line has to match.
        regex: Regex,
        /// Standard output and error.
        streams: [Stream; 2],
    },
}

impl Probe {
    /// The probe of a process, if its readiness has to be looked for. `open` opens an output file to read.
    ///
    /// # Errors
    /// An output cannot be opened.
    pub fn new(process: &Process, init: Pid, open: impl Fn(&str) -> Result<File>) -> Result<Option<Self>> {
        Ok(match &process.ready {
            Some(Ready::Tcp { port }) => Some(Self::Tcp { init, port: *port }),
            Some(Ready::Output { regex }) => Some(Self::Output {
                regex: compile(process, regex)?,
                streams: [Stream::new(open(&process.stdout)?), Stream::new(open(&process.stderr)?)],
            }),
            Some(Ready::Delay { .. }) | None => None,
        })
    }

    /// Whether the process is ready now.
    ///
    /// # Errors
    /// An output cannot be read.
    pub fn look(&mut self) -> Result<bool> {
        match self {
            Self::Tcp { init, port } => Ok(["tcp", "tcp6"].iter().any(|table| {
                // Without IPv6 in the node's kernel the second table does not exist.
                let table = read_to_string(format!("/proc/{init}/net/{table}")).unwrap_or_default();
                is_listening(&table, *port)
            })),
            Self::Output { regex, streams } => {
                for stream in streams {
                    if stream.new_lines()?.iter().any(|line| regex.is_match(line)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// Compiles the regular expression of a process.
///
/// # Errors
/// It is malformed.
pub fn compile(process: &Process, regex: &str) -> Result<Regex> {
    Regex::new(regex).doing(|| format!("process {}: ready: output: {regex}", process.name))
}

/// Whether a table in the format of /proc/net/tcp has a socket that listens on `port`.
fn is_listening(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local_port = fields.next().and_then(|local| local.rsplit(':').next());
        let state = fields.nth(1);
        state == Some(LISTEN) && local_port.and_then(|text| u16::from_str_radix(text, 16).ok()) == Some(port)
    })
}

/// A file that grows, read line by line.
pub struct Stream {
    file: File,
    partial: Vec<u8>,
}

impl Stream {
    fn new(file: File) -> Self {
        Self { file, partial: Vec::new() }
    }

    /// The lines that were completed since the last call.
    fn new_lines(&mut self) -> Result<Vec<String>> {
        self.file.read_to_end(&mut self.partial).doing(|| "read the output of a process".to_owned())?;
        Ok(take_lines(&mut self.partial))
    }
}

fn take_lines(partial: &mut Vec<u8>) -> Vec<String> {
    let Some(end) = partial.iter().rposition(|&byte| byte == b'\n') else { return Vec::new() };
    let whole: Vec<u8> = partial.drain(..=end).collect();
    String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000
   1: 0100007F:0016 0100007F:9999 01 00000000:00000000 00:00000000
";

    #[test]
    fn only_a_listening_socket_counts() {
        assert!(is_listening(TABLE, 5201));
        assert!(!is_listening(TABLE, 22));
        assert!(!is_listening(TABLE, 80));
        assert!(is_listening("head\n 0: 00000000000000000000000000000000:0050 0:0 0A\n", 80));
    }

    #[test]
    fn looks_come_every_ten_milliseconds_or_take_a_tenth_of_the_time() {
        assert_eq!(next_look_ns(5, 400_005), 10_000_005);
        assert_eq!(next_look_ns(5, 3_000_005), 30_000_005);
    }

    #[test]
    fn a_line_counts_when_it_is_complete() {
        let mut partial = b"one\ntwo\nthr".to_vec();
        assert_eq!(take_lines(&mut partial), ["one", "two"]);
        assert!(take_lines(&mut partial).is_empty());
        partial.extend_from_slice(b"ee\n");
        assert_eq!(take_lines(&mut partial), ["three"]);
    }
}
