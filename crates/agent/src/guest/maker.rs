//! Who makes the nodes of a guest: a process of its own.
//!
//! **Problem.** An init is a fork of who makes it. So its process begins with the page tables of all that is in that memory, each
//! of which is a mapping of the host, and with all files that are open there. The agent has the plan in memory, and of each node
//! three files: what one more node took grew with the number of them, in time and in memory.
//!
//! **Rule.** So the agent forks the maker while it has next to nothing, and tells it of one node at a time. The maker hands over what
//! it has opened of the node, and forgets it.
//!
//! ```text
//! agent ── node, its processes ──►  maker ── fork ──►  init
//!       ◄── network, line to the init ──
//! ```

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::sys::wait::waitpid;
use nix::unistd::{fork, ForkResult, Pid};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::error::{Doing, Error, Result};
use crate::guest::ground::Ground;
use crate::network::Namespace;
use crate::node::orders::{receive, send};
use crate::node::{self, changes, child, code, Handle, Made};
use crate::plan::interior::Interior;
use crate::plan::{ClockRate, Process};

/// What the agent wants, as it writes it; a text of JSON behind its length, since what is in a node may be long.
#[derive(Serialize)]
enum Order<'a> {
    /// What holds of all nodes: how the guest's clock reads, which their inits tell instants by, and whether their programs are to
    /// be kept from setting the date.
    Begin { clock_rate: Option<ClockRate>, keeps_date: bool },
    /// Make a node that runs these processes, by their places in the plan.
    Make { node: &'a Interior, processes: &'a [(usize, &'a Process)] },
}

/// The same as it is read.
#[derive(Deserialize)]
enum Ordered {
    Begin { clock_rate: Option<ClockRate>, keeps_date: bool },
    Make { node: Box<Interior>, processes: Vec<(usize, Process)> },
}

/// What the maker has to say.
#[derive(Serialize, Deserialize)]
enum Reply {
    /// A node is there: with the packet come its network namespace, a netlink socket in that, and the line to its init.
    Made {
        /// The init, in the agent's PID namespace.
        init: i32,
    },
    /// Nodes cannot be made.
    Failed {
        /// What was tried and why it failed.
        reason: String,
    },
}

/// The agent's hold on the maker.
pub struct Maker {
    process: Pid,
    orders: UnixStream,
    replies: OwnedFd,
}

impl Maker {
    /// Starts it, with all that the caller has in memory.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(run_dir: &str) -> Result<Self> {
        let doing = || "start the maker of nodes".to_owned();
        let (orders, taken) = UnixStream::pair().doing(doing)?;
        let (replies, given) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).doing(doing)?;
        // SAFETY: this program has one thread, so the child may do whatever the parent may.
        match unsafe { fork() }.doing(doing)? {
            ForkResult::Child => {
                // All else belongs to the agent. Without the line to it there is nobody to tell why.
                if child::keep_only(vec![taken.as_raw_fd(), given.as_raw_fd()]).is_err() {
                    std::process::exit(1);
                }
                child::live(&given, |reason| Reply::Failed { reason }, || serve(run_dir, taken, &given))
            }
            ForkResult::Parent { child } => Ok(Self { process: child, orders, replies }),
        }
    }

    /// Tells it, before the first node, how the guest's clock reads, and whether to keep the programs of nodes from setting the
    /// date: a kernel has one, and no namespace for it, so that one node would set it for all that are in the guest.
    ///
    /// # Errors
    /// The maker is gone.
    pub fn begin(&mut self, clock_rate: Option<ClockRate>, keeps_date: bool) -> Result<()> {
        self.order(&Order::Begin { clock_rate, keeps_date })
    }

    /// Makes a node, and waits until its init is there.
    ///
    /// # Errors
    /// The kernel refuses something: what, and on which node.
    pub fn make(&mut self, node: &Interior, processes: &[(usize, &Process)]) -> Result<(Namespace, Handle)> {
        self.order(&Order::Make { node, processes })?;
        let (init, descriptors) = match receive(&self.replies)? {
            Some((Reply::Made { init }, descriptors)) => (init, descriptors),
            Some((Reply::Failed { reason }, _)) => return Err(Error::new(reason)),
            None => return Err(Error::new("the maker of nodes died")),
        };
        let [file, netlink, socket] = <[OwnedFd; 3]>::try_from(descriptors)
            .map_err(|found| Error::new(format!("node {} came with {} files", node.name, found.len())))?;
        let mut interface_sysctls = node.sysctls.clone();
        interface_sysctls.retain(|key, _| node.is_of_interface(key));
        let handle = Handle { init: Pid::from_raw(init), socket, interface_sysctls, is_off: false.into() };
        Ok((Namespace::of_opened(&node.name, file, netlink), handle))
    }

    /// Lets it end. The inits, whose parent it is, are the agent's from then on.
    ///
    /// # Errors
    /// It is not there to be waited for.
    pub fn end(self) -> Result<()> {
        drop(self.orders);
        waitpid(self.process, None).map(drop).doing(|| "wait for the maker of nodes".to_owned())
    }

    fn order(&mut self, order: &Order<'_>) -> Result<()> {
        let doing = || "tell the maker of nodes".to_owned();
        let text = serde_json::to_vec(order).doing(doing)?;
        self.orders.write_all(&[&text.len().to_ne_bytes(), text.as_slice()].concat()).doing(doing)
    }
}

/// Lives the life of the maker, until the agent wants nothing any more.
fn serve(run_dir: &str, mut orders: UnixStream, replies: &OwnedFd) -> Result<()> {
    changes::reserve()?;
    code::share()?;
    let ground = Ground::find(run_dir)?;
    let outside = namespace_file("mnt")?;
    while let Some(order) = next(&mut orders)? {
        match order {
            Ordered::Begin { clock_rate, keeps_date } => {
                clock_rate.iter().try_for_each(|rate| rate.face().map(clock::set_face))?;
                if keeps_date {
                    keep_date()?;
                }
            }
            Ordered::Make { node, processes } => {
                let Made { init, socket, network } = node::create(&processes.into_iter().collect(), &node, &ground)?;
                // What the next one is made of is there: the root of the guest. All else is new for each.
                enter(&outside, CloneFlags::CLONE_NEWNS)?;
                let [file, netlink] = network.descriptors();
                send(replies, &Reply::Made { init: init.as_raw() }, &[file, netlink, socket.as_raw_fd()])?;
            }
        }
    }
    Ok(())
}

/// Waits for the next order; `None` when there is none any more.
fn next(orders: &mut UnixStream) -> Result<Option<Ordered>> {
    let doing = || "hear what the agent wants".to_owned();
    let mut length = [0; size_of::<usize>()];
    match orders.read_exact(&mut length) {
        Err(end) if end.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read.doing(doing)?,
    }
    let mut text = vec![0; usize::from_ne_bytes(length)];
    orders.read_exact(&mut text).doing(doing)?;
    serde_json::from_slice(&text).map(Some).doing(doing)
}

/// The file of a namespace that the caller is in.
///
/// # Errors
/// There is no such kind.
pub fn namespace_file(kind: &str) -> Result<File> {
    let path = format!("/proc/self/ns/{kind}");
    File::open(&path).doing(|| format!("open {path}"))
}

/// Moves the caller into a namespace.
///
/// # Errors
/// The kernel refuses it.
pub fn enter(namespace: &File, kind: CloneFlags) -> Result<()> {
    setns(namespace, kind).doing(|| "return to the guest's own namespaces".to_owned())
}

fn keep_date() -> Result<()> {
    const CAP_SYS_TIME: libc::c_ulong = 25; // linux/capability.h
                                            // SAFETY: without pointers; what children have after an execve(2) is all that changes.
    Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0) })
        .map(drop)
        .doing(|| "keep the date".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_heard_as_it_was_given_however_much_is_in_a_node() {
        let text = "x".repeat(300_000);
        let node: Interior = serde_json::from_value(serde_json::json!({
            "name": "a", "guest": "guest0", "interfaces": [{"name": "eth0"}], "binds": [], "cpu": null, "sysctls": {},
            "image": {"kind": "stored", "name": "i", "digest": "d", "file": "f", "device": 2},
            "files": [{"path": "/a", "text": text, "hex": null, "mode": 420, "owner": "root"}],
            "volumes": [{"name": "v", "path": "/v", "written": null}], "memory_bytes": 5, "disk": null, "written": null
        }))
        .unwrap();
        let (orders, mut taken) = UnixStream::pair().unwrap();
        let (replies, _given) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let heard = std::thread::spawn(move || std::iter::from_fn(|| next(&mut taken).unwrap()).collect::<Vec<_>>());
        let mut maker = Maker { process: Pid::from_raw(0), orders, replies };
        maker.begin(None, true).unwrap();
        maker.order(&Order::Make { node: &node, processes: &[] }).unwrap();
        drop(maker);
        let heard = heard.join().unwrap();
        let [Ordered::Begin { clock_rate: None, keeps_date: true }, Ordered::Make { node: told, processes }] =
            heard.as_slice()
        else {
            panic!()
        };
        assert_eq!(serde_json::to_value(told).unwrap(), serde_json::to_value(&node).unwrap());
        assert_eq!(told.files[0].contents().unwrap().unwrap().len(), 300_000);
        assert!(processes.is_empty());
    }
}
