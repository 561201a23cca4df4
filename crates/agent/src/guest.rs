//! The guest as a whole: its mounts, control groups and its end.

pub mod ground;
pub mod images;
mod logs;
pub mod maker;
pub mod modules;
pub mod run_dir;
pub mod shortage;
pub mod volumes;

use std::fs::{create_dir_all, write, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sys::reboot::{reboot, RebootMode};
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::wait;
use nix::unistd::{dup2, sync, Pid};

use crate::clock::hurry_disks;
use crate::error::{Doing, Result};
use crate::node::changes;
use crate::plan::interior::HostsEntry;

/// Where the guest's own control groups hang.
pub const CGROUPS: &str = "/sys/fs/cgroup";
/// The guest's own writable tree, since its root is read-only.
pub const SCRATCH: &str = "/run";
/// What all nodes have in common above the machine's root: the upper of their two lower layers.
pub const COMMON: &str = "/run/common";
/// Where each node puts its root together, in its own mount namespace.
pub const WORKSHOP: &str = "/run/node";
/// Open files of the agent: a few for every node while it builds.
const OPEN_FILES_MAX: u64 = 65_536;
/// Zero here has a kernel rest in which nothing happens. Otherwise it looks twice a second whether pages are to be moved
/// together (mm/compaction.c, kcompactd), and is awake for another tick each time.
const COMPACTION: &str = "/proc/sys/vm/compaction_proactiveness";
/// By this the kernel keeps few free pages of its own aside: four batches, as it has more parts than memory has pages. By itself
/// Linux keeps up to an eighth of all memory (since 6.7) and hands them out in the opposite order of how they came: those that
/// loading modules leaves went to what is read of files afterwards, page by page backwards, and a program's process had
/// to be told of each of its pages for itself, where it is told of many that follow each other at once.
const PAGES_ASIDE: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";
const PARTS: &str = "100000";

/// Mounts one file system, with the error saying which and where.
///
/// # Errors
/// The kernel refuses it.
pub fn mount_at(kind: &str, target: &str, flags: MsFlags, options: &str) -> Result<()> {
    mount(Some(kind), target, Some(kind), flags, Some(options)).doing(|| format!("mount {kind} on {target}"))
}

/// Mounts what the agent itself needs: devices (for the channel), /proc and /sys.
///
/// # Errors
/// The kernel refuses one of them.
pub fn prepare() -> Result<()> {
    let nothing = MsFlags::empty();
    mount_devices()?;
    use_null_for_standard_streams()?;
    mount_at("proc", "/proc", nothing, "")?;
    mount_at("sysfs", "/sys", nothing, "")?;
    setrlimit(Resource::RLIMIT_NOFILE, OPEN_FILES_MAX, OPEN_FILES_MAX)
        .doing(|| "raise the limit of open files".to_owned())?;
    changes::reserve()?;
    // Without its agent the guest is lost; memory shortage has to hit a program instead.
    write("/proc/self/oom_score_adj", "-1000").doing(|| "write /proc/self/oom_score_adj".to_owned())
}

/// Many kernels are configured to mount the devices before they start process 1.
fn mount_devices() -> Result<()> {
    match mount(Some("devtmpfs"), "/dev", Some("devtmpfs"), MsFlags::empty(), None::<&str>) {
        Ok(()) | Err(Errno::EBUSY) => Ok(()),
        Err(cause) => Err(cause).doing(|| "mount devtmpfs on /dev".to_owned()),
    }
}

/// Process 1 may have been started with a console that leads nowhere, or none.
fn use_null_for_standard_streams() -> Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").doing(|| "open /dev/null".to_owned())?;
    for stream in 0..3 {
        dup2(null.as_raw_fd(), stream).doing(|| "redirect to /dev/null".to_owned())?;
    }
    if null.as_raw_fd() < 3 {
        std::mem::forget(null);
    }
    Ok(())
}

/// Mounts what the nodes need: control groups, and the tree that they have in common.
///
/// # Errors
/// The kernel refuses one of them.
pub fn prepare_for_nodes(hosts: &[HostsEntry]) -> Result<()> {
    mount_at("cgroup2", CGROUPS, MsFlags::empty(), "")?;
    enable_controllers(CGROUPS)?;
    let nodes = cgroup_of_nodes();
    create_dir_all(&nodes).doing(|| format!("make {nodes}"))?;
    enable_controllers(&nodes)?;
    mount_at("tmpfs", SCRATCH, MsFlags::empty(), "mode=755")?;
    for directory in [&format!("{COMMON}/etc"), WORKSHOP] {
        create_dir_all(directory).doing(|| format!("make {directory}"))?;
    }
    let file = format!("{COMMON}/etc/hosts");
    write(&file, hosts_text(hosts)).doing(|| format!("write {file}"))?;
    logs::hide(COMMON)
}

/// Writes one kernel parameter of the namespace that the caller is in.
///
/// # Errors
/// There is no such parameter, or it refuses the value.
pub fn set_sysctl(key: &str, value: &str) -> Result<()> {
    write(format!("/proc/sys/{key}"), value).doing(|| format!("sysctl {key} = {value}"))
}

/// Has the kernel rest in which nothing happens, where it does not without being told.
///
/// # Errors
/// It refuses.
pub fn let_rest() -> Result<()> {
    write_if_there(COMPACTION, "0").doing(|| format!("write {COMPACTION}"))
}

/// Has the kernel hand out free pages in their order, from before there are any that have been used.
///
/// # Errors
/// It refuses.
pub fn keep_pages_in_order() -> Result<()> {
    write_if_there(PAGES_ASIDE, PARTS).doing(|| format!("write {PAGES_ASIDE}"))
}

/// Writes a file of the kernel's that its configuration may have left out, as that of a kernel which never moves pages does.
fn write_if_there(file: &str, text: &str) -> std::io::Result<()> {
    match OpenOptions::new().write(true).open(file) {
        Err(absent) if absent.kind() == ErrorKind::NotFound => Ok(()),
        opened => opened?.write_all(text.as_bytes()),
    }
}

/// Writes several of them.
///
/// # Errors
/// The first that is not there, or refuses its value.
pub fn set_sysctls<'a>(sysctls: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<()> {
    sysctls.into_iter().try_for_each(|(key, value)| set_sysctl(key, value))
}

fn enable_controllers(group: &str) -> Result<()> {
    let file = format!("{group}/cgroup.subtree_control");
    write(&file, "+cpu +io +memory +pids").doing(|| format!("write {file}"))
}

/// The control group that holds those of the nodes.
pub fn cgroup_of_nodes() -> String {
    format!("{CGROUPS}/nodes")
}

/// The text of /etc/hosts.
fn hosts_text(hosts: &[HostsEntry]) -> String {
    let own = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    let lines = hosts.iter().map(|entry| format!("{} {}\n", entry.address, entry.names.join(" ")));
    std::iter::once(own).chain(lines).collect()
}

/// Ends every process, writes back every file, and switches the guest off.
pub fn power_off() -> ! {
    hurry_disks();
    // Nothing can be done about a failure here, and the power goes off anyway.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    while wait().is_ok() {}
    sync();
    let _ = reboot(RebootMode::RB_POWER_OFF);
    loop {
        nix::unistd::pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_kernel_was_built_without_is_passed_over_and_one_that_refuses_is_not() {
        let path = std::env::temp_dir().join(format!("dilaton-knob-{}", std::process::id()));
        let file = path.to_str().unwrap();
        write_if_there(file, "0").unwrap();
        assert!(!path.exists());
        write(file, "9").unwrap();
        write_if_there(file, "0").unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "0");
        std::fs::remove_file(file).unwrap();
        assert!(write_if_there("/proc/sys/kernel", "0").is_err());
    }

    #[test]
    fn the_hosts_file_begins_with_the_loopback() {
        let entry = HostsEntry { address: "10.0.0.1".into(), names: vec!["a".into(), "a.lab".into()] };
        let text = hosts_text(&[entry]);
        assert!(text.starts_with("127.0.0.1 localhost\n"));
        assert!(text.ends_with("\n10.0.0.1 a a.lab\n"));
    }
}
