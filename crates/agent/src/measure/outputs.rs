//! Which part of a process's output came at which instant.
//!
//! A process writes into a file of the run directory by itself, and the agent is not in its way. The guest's kernel tells
//! of each write to a file of a directory that is watched (inotify(7)); the sampler, which goes before all programs, then
//! looks how long the file is and notes it with the instant. Writes between which it has not run are one row, so that a
//! row is never early, and late by no more than the sampler was. Events that the kernel had no room for cost rows, not
//! bytes: the next row of a file counts what came before, too.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::sys::stat::fstatat;

use super::table::Table;
use crate::error::{Doing, Result};
use crate::guest::run_dir::RunDir;
use crate::network::Namespace;

/// The name of its table.
pub const NAME: &str = "outputs";
/// The header line of its table. `bytes`: the length of the output from then on.
pub const HEADER: &str = "t_ns,node,process,stream,bytes";
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The outputs of all nodes.
pub struct Outputs {
    inotify: Inotify,
    nodes: HashMap<WatchDescriptor, Node>,
}

/// The outputs of a node.
struct Node {
    name: String,
    directory: OwnedFd,
    /// How long each file was when a row was made of it.
    lengths: HashMap<OsString, i64>,
}

impl Outputs {
    /// Watches the outputs of each node from now on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn watch(namespaces: &[Namespace], run_dir: &RunDir) -> Result<Self> {
        let doing = || "watch outputs".to_owned();
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).doing(doing)?;
        let mut nodes = HashMap::new();
        for namespace in namespaces {
            let name = namespace.node().to_owned();
            let path = format!("nodes/{name}");
            run_dir.make_directory(path.as_ref())?;
            let directory = run_dir.open_file(&path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            let place = format!("/proc/self/fd/{}", directory.as_raw_fd());
            let watch = inotify.add_watch(place.as_str(), AddWatchFlags::IN_MODIFY).doing(doing)?;
            nodes.insert(watch, Node { name, directory, lengths: HashMap::new() });
        }
        Ok(Self { inotify, nodes })
    }

    /// Becomes readable when there is something new.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Appends a row for each output that has grown, or was begun anew; returns how many.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn read(&mut self, t_ns: i64, table: &mut Table) -> Result<u64> {
        let mut count = 0;
        loop {
            let events = match self.inotify.read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN) => return Ok(count),
                Err(error) => return Err(error).doing(|| "read what is told of outputs".to_owned()),
            };
            for event in events {
                if let (Some(node), Some(file)) = (self.nodes.get_mut(&event.wd), event.name) {
                    count += u64::from(node.note(t_ns, file, table));
                }
            }
        }
    }
}

impl Node {
    /// Appends a row if `file` is an output that has another length than before.
    fn note(&mut self, t_ns: i64, file: OsString, table: &mut Table) -> bool {
        let Some((process, stream)) = file.to_str().and_then(output_of) else { return false };
        let status = fstatat(Some(self.directory.as_raw_fd()), file.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        // Root of a node may have removed it meanwhile.
        let Ok(length) = status.map(|status| status.st_size) else { return false };
        if self.lengths.get(&file) == Some(&length) {
            return false;
        }
        // Writing into memory cannot fail.
        let _ = writeln!(table.rows, "{t_ns},{},{process},{stream},{length}", self.name);
        self.lengths.insert(file, length);
        true
    }
}

/// The process and the stream whose file has this name.
fn output_of(file: &str) -> Option<(&str, &str)> {
    let (process, stream) = file.rsplit_once('.')?;
    STREAMS.contains(&stream).then_some((process, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_told_by_its_name() {
        assert_eq!(output_of("server-2.stderr"), Some(("server-2", "stderr")));
        assert_eq!(output_of("a.b.stdout"), Some(("a.b", "stdout")));
        assert_eq!(output_of("core"), None);
        assert_eq!(output_of("log.txt"), None);
    }
}
