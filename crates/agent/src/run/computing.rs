//! Which program of a node computes, by /proc.

use std::fs;

/// Characters of a command line that are told.
const COMMAND_LENGTH_MAX: usize = 200;

/// A program that runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Its node.
    pub node: String,
    /// Its command line.
    pub command: String,
}

/// The program of a node that wants the CPU now and has used most of it so far.
pub fn find() -> Option<Program> {
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let running = pids.filter_map(|pid| {
        let ticks = running_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        let node = node_of(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)?;
        let command = command(&fs::read(format!("/proc/{pid}/cmdline")).ok()?);
        Some((ticks, Program { node, command }))
    });
    running.max_by_key(|(ticks, _)| *ticks).map(|(_, program)| program)
}

/// The CPU time of a process that runs, from its `stat`; `None` when it sleeps.
fn running_ticks(stat: &str) -> Option<u64> {
    // The name before the last parenthesis may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? != "R" {
        return None;
    }
    let (user, system) = (fields.nth(10)?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

/// The node of a process, from its `cgroup`; `None` for those of the agent.
fn node_of(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    path.strip_prefix("/nodes/")?.split('/').next().map(str::to_owned)
}

fn command(cmdline: &[u8]) -> String {
    let text = String::from_utf8_lossy(cmdline);
    text.trim_end_matches('\0').replace('\0', " ").chars().take(COMMAND_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_runs_has_ticks() {
        let stat = |state| format!("12 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0");
        assert_eq!(running_ticks(&stat("R")), Some(42));
        assert_eq!(running_ticks(&stat("S")), None);
    }

    #[test]
    fn the_node_is_the_group_below_nodes() {
        assert_eq!(node_of("0::/nodes/a/x\n"), Some("a".to_owned()));
        assert_eq!(node_of("0::/agent\n"), None);
    }

    #[test]
    fn a_command_line_is_one_line() {
        assert_eq!(command(b"python3\0-c\0pass\0"), "python3 -c pass");
    }
}
