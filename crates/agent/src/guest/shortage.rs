//! Memory that was short, by what the kernel has counted.
//!
//! A guest holds many machines in the memory of one. When all buffers of TCP together come near their limit (tcp_mem, a
//! part of the guest's memory) receivers throw away what has arrived, and so packets are lost that no queue has dropped;
//! UDP does the same. When memory as a whole is gone, or that of a node, the kernel ends a program. None of this is seen
//! from outside, and all of it is looked for when a run is over.

use std::collections::HashMap;
use std::fs::read_to_string;

use nix::unistd::Pid;

use crate::channel::protocol::{Memory, Observation};
use crate::error::{Doing, Result};
use crate::guest::cgroup_of_nodes;

/// How many programs of a node the kernel has ended because a fault has taken memory of it; less than 0 while one lasts.
pub type Wanted = HashMap<String, i64>;

/// What was short in these nodes, given with the process 1 of each, but for what was wanted.
///
/// # Errors
/// The kernel does not say.
pub fn find<'a>(nodes: impl Iterator<Item = (&'a str, Pid)>, wanted: &Wanted) -> Result<Vec<Observation>> {
    let has_ended_programs = counted(&read("/proc/vmstat")?, "oom_kill") > 0;
    let mut found = Vec::new();
    for (node, init) in nodes {
        let mut add = |memory, times| {
            if times > 0 {
                found.push(Observation::MemoryShort { node: node.to_owned(), memory, times });
            }
        };
        let of_protocol = |file, protocol, name| Ok(of(&read(&format!("/proc/{init}/net/{file}"))?, protocol, name));
        add(Memory::Tcp, of_protocol("netstat", "TcpExt:", "TCPMemoryPressures")?);
        add(Memory::Udp, of_protocol("snmp", "Udp:", "MemErrors")?);
        if has_ended_programs {
            let events = events(node)?;
            let whose = if counted(&events, "oom") > 0 { Memory::Node } else { Memory::Guest };
            let wanted = wanted.get(node).map_or(0, |&wanted| wanted.max(0).unsigned_abs());
            add(whose, counted(&events, "oom_kill").saturating_sub(wanted));
        }
    }
    Ok(found)
}

/// How many programs of a node the kernel has ended for want of memory.
///
/// # Errors
/// The kernel does not say.
pub fn ended(node: &str) -> Result<u64> {
    Ok(counted(&events(node)?, "oom_kill"))
}

fn events(node: &str) -> Result<String> {
    read(&format!("{}/{node}/memory.events", cgroup_of_nodes()))
}

fn read(path: &str) -> Result<String> {
    read_to_string(path).doing(|| format!("read {path}"))
}

/// A counter of a file with a name and a number a line; 0 where it is not there.
fn counted(text: &str, name: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(number).unwrap_or(0)
}

/// A counter of a file with a line of names and a line of numbers for each protocol; 0 where it is not there.
fn of(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)).map(str::split_whitespace);
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    names.zip(numbers).find(|(found, _)| *found == name).and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let text = "low 1\noom 2\noom_kill 3\n";
        assert_eq!(counted(text, "oom"), 2);
        assert_eq!(counted(text, "oom_kill"), 3);
        assert_eq!(counted(text, "kill"), 0);
    }

    #[test]
    fn a_counter_of_a_protocol_is_below_its_name() {
        let text = "Udp: InDatagrams MemErrors\nUdp: 7 8\nUdpLite: InDatagrams MemErrors\nUdpLite: 1 2\n";
        assert_eq!(of(text, "Udp:", "MemErrors"), 8);
        assert_eq!(of(text, "Udp:", "Others"), 0);
        assert_eq!(of(text, "Tcp:", "MemErrors"), 0);
    }
}
