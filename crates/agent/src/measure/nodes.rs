//! CPU, memory and disk of nodes, by the files of their control groups, which are kept open.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use super::instrument::Instrument;
use crate::clock;
use crate::error::{Doing, Result};
use crate::guest::cgroup_of_nodes;
use crate::network::Namespace;

/// The longest of these files has some thirty lines.
const FILE_BYTES_MAX: usize = 4096;

/// The control groups of all nodes.
pub struct Nodes(Vec<Group>);

struct Group {
    node: String,
    cpu: Source,
    memory: Source,
    processes: Source,
    /// Not every kernel has it.
    io: Option<Source>,
}

/// A file of a control group.
struct Source {
    path: String,
    file: File,
}

impl Nodes {
    /// Opens the files of each node.
    ///
    /// # Errors
    /// A node has no control group.
    pub fn open(namespaces: &[Namespace]) -> Result<Self> {
        let open = |namespace: &Namespace| {
            let node = namespace.node();
            let source = |file| Source::open(format!("{}/{node}/{file}", cgroup_of_nodes()));
            Ok(Group {
                node: node.to_owned(),
                cpu: source("cpu.stat")?,
                memory: source("memory.current")?,
                processes: source("pids.current")?,
                io: source("io.stat").ok(),
            })
        };
        Ok(Self(namespaces.iter().map(open).collect::<Result<_>>()?))
    }
}

impl Instrument for Nodes {
    fn name(&self) -> &'static str {
        "nodes"
    }

    fn header(&self) -> &'static str {
        "t_ns,node,cpu_ns,memory_bytes,processes,io_read_bytes,io_write_bytes"
    }

    fn sample(&mut self, t_ns: i64, rows: &mut Vec<u8>) -> Result<usize> {
        for group in &self.0 {
            // The kernel counts on its own clock.
            let cpu_us = group.cpu.read(|text| labelled(text, "usage_usec "))?;
            let cpu_ns = cpu_us.map(|us: u64| clock::face().span(us.saturating_mul(1000)).as_ns());
            let memory = group.memory.read(|text| text.trim_end().parse().ok())?;
            let processes = group.processes.read(|text| text.trim_end().parse().ok())?;
            // Writing into memory cannot fail.
            let _ = write!(rows, "{t_ns},{}", group.node);
            for value in [cpu_ns, memory, processes] {
                append(rows, value);
            }
            for label in ["rbytes=", "wbytes="] {
                append(rows, group.io.as_ref().map_or(Ok(None), |io| io.read(|text| summed(text, label)))?);
            }
            rows.push(b'\n');
        }
        Ok(self.0.len())
    }
}

impl Source {
    fn open(path: String) -> Result<Self> {
        let file = File::open(&path).doing(|| format!("open {path}"))?;
        Ok(Self { path, file })
    }

    fn read<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let mut bytes = [0; FILE_BYTES_MAX];
        let length = self.file.read_at(&mut bytes, 0).doing(|| format!("read {}", self.path))?;
        Ok(std::str::from_utf8(&bytes[..length]).ok().and_then(parse))
    }
}

fn append(rows: &mut Vec<u8>, value: Option<u64>) {
    rows.push(b',');
    if let Some(value) = value {
        // Writing into memory cannot fail.
        let _ = write!(rows, "{value}");
    }
}

/// The number behind `label` at the beginning of a line.
fn labelled(text: &str, label: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok())
}

/// The sum of the numbers behind `label` in all lines, one for each disk; `None` without a disk.
fn summed(text: &str, label: &str) -> Option<u64> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix(label)?.parse::<u64>().ok());
    words.fold(None, |sum, value| Some(sum.unwrap_or(0) + value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_is_found_among_the_other_lines() {
        assert_eq!(labelled("usage_usec 1234\nuser_usec 1000\n", "usage_usec "), Some(1234));
        assert_eq!(labelled("user_usec 1000\n", "usage_usec "), None);
    }

    #[test]
    fn the_bytes_of_all_disks_are_added_and_none_is_not_zero() {
        let text = "8:0 rbytes=100 wbytes=7 rios=1\n8:16 rbytes=20 wbytes=0 rios=2\n";
        assert_eq!(summed(text, "rbytes="), Some(120));
        assert_eq!(summed(text, "wbytes="), Some(7));
        assert_eq!(summed("", "rbytes="), None);
    }
}
