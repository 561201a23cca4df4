//! The inside of a node: its control group and its file tree.
//!
//! The root of a node is an overlay. Its lower layers are the tree that all nodes have in common (`/etc/hosts`, and
//! /var/log without files) above the machine's own root, which the guest sees through hostfs. Its upper layer is a tmpfs,
//! one a node; directories of the same tmpfs are bound over /tmp, /run, /var/tmp and /dev, which is cheaper than a file
//! system for each. Where the node has a disk for all that it writes, its file system takes the place of the tmpfs but for
//! /dev and /run. An overlay shows its lower layer without what is mounted on top of it, so hostfs
//! would show the outer machine's /proc, /sys, /dev and /tmp, and with the latter the run directory: each of them is
//! covered.
//!
//! The tree of a node may be that of an image instead (`guest/images.rs`): then it is the lowest layer, and nothing of
//! the machine's root is seen.
//!
//! ```text
//! /                overlay: upper NODE/upper, lower COMMON, lower hostfs /
//! ├── dev          NODE/dev    null, zero, full, random, urandom, tty, net/tun; shm; devpts of its own
//! ├── proc  sys    of the node's own PID and network namespace; sys/fs/cgroup its own control group, not to be changed
//! ├── run  tmp  var/tmp     NODE/…
//! ├── lib/modules  the modules of the guest's kernel, so that modprobe works
//! └── RUN_DIR      covered, if nothing of the above covers it
//! ```

use std::fs::{set_permissions, write, DirBuilder, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{chown, symlink, DirBuilderExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::stat::{makedev, mknod, umask, Mode, SFlag};
use nix::unistd::{chdir, mkdir, pivot_root, sethostname};

use crate::error::{Doing, Result};
use crate::guest::ground::Ground;
use crate::guest::{cgroup_of_nodes, images, mount_at, volumes, CGROUPS, WORKSHOP};
use crate::node::inside::inside;
use crate::node::memory::Memory;
use crate::node::passwd::{self, User};
use crate::node::restore;
use crate::plan::interior::{Bind, Disk, Interior, OwnFile, Volume};

/// Character devices of a node: name, major, minor.
const DEVICES: [(&str, u64, u64); 7] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
    ("net/tun", 10, 200),
];
/// Symbolic links in /dev.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];
/// Directories of the node's tmpfs that are bound into its root, and their permissions.
const OWN_DIRECTORIES: [(&str, u32); 4] = [("dev", 0o755), ("run", 0o755), ("tmp", 0o1777), ("var/tmp", 0o1777)];

/// Those of these directories that are in memory whatever the node has.
const IN_MEMORY: [&str; 2] = ["dev", "run"];

/// Where a node sees its processes.
const PROCESSES: &str = "/proc";

/// Where the node's disk is mounted while the node is put together.
const DISK: &str = "/run/node/disk";
/// The name of a disk in /dev, as in most virtual machines; the numbers of the kernel's ubd devices.
const DISK_NAME: &str = "vda";
const DISK_MAJOR: u64 = 98;
const DISK_MINORS: u64 = 16;

/// What the init of a node keeps of its inside.
pub struct Inside {
    /// The file into which the numbers of the processes that belong to the node's control group are written.
    pub members: File,
    /// How much memory they may have.
    pub memory: Memory,
    /// What it writes (`changes.rs`).
    pub changes: [File; 3],
}

/// Puts the inside of the node together in the namespaces of the calling process, which are new, and enters it. What is mounted
/// in them is theirs alone, as all mounts of process 1 are. What it takes to be of the node's PID namespace is left to
/// [`settle`].
///
/// # Errors
/// The kernel refuses something.
pub fn enter(node: &Interior, ground: &Ground) -> Result<Inside> {
    let (members, memory) = create_cgroup(node)?;
    sethostname(&node.name).doing(|| "set the host name".to_owned())?;
    mount_at("tmpfs", WORKSHOP, MsFlags::empty(), "mode=755")?;
    if let Some(archive) = &node.written {
        restore::restore(archive, WORKSHOP)?;
    }
    mount_disk(node)?;
    let root = mount_root(node, ground)?;
    let open = |path: &str| File::open(path).doing(|| format!("open {path}"));
    let changes = [open(&upper_layer(node))?, open(WORKSHOP)?, open(volumes::PLACE)?];
    let place = |path: &str| ground.place(node, &root, path);
    with_exact_modes(|| {
        bind_own_directories(node, ground, place)?;
        fill_dev(node, &root)
    })?;
    mount_over("sysfs", &place("/sys"), "")?;
    mount_cgroup(&place(CGROUPS))?;
    bind(&ground.modules.to_string_lossy(), &place("/lib/modules"))?;
    cover_run_directory(&place(ground.run_dir))?;
    bind_from_machine(node, &root)?;
    bind_disk(node, &root)?;
    bind_volumes(node, &root)?;
    change_root(&root)?;
    Ok(Inside { members, memory, changes })
}

/// Does the rest in the node's init, which is inside.
///
/// # Errors
/// The kernel refuses something.
pub fn settle(node: &Interior) -> Result<()> {
    mount_over("proc", PROCESSES, "")?;
    // Here, where links lead as they do for the node's programs, and over all that was put there before.
    // What a node of an earlier run had of them is its own by now.
    let is_due = |file: &&OwnFile| node.written.is_none() || !Path::new(&file.path).exists();
    node.files.iter().filter(is_due).try_for_each(write_own_file)
}

/// Makes the control group of the node's programs, and a namespace in which it is the root of all groups, by being in it
/// for a moment. The init stays outside, as it is no load of the node.
fn create_cgroup(node: &Interior) -> Result<(File, Memory)> {
    let group = format!("{}/{}", cgroup_of_nodes(), node.name);
    let is_new = match mkdir(group.as_str(), Mode::from_bits_truncate(0o755)) {
        Err(Errno::EEXIST) => false,
        made => made.doing(|| format!("make {group}")).map(|()| true)?,
    };
    let mut memory = Memory::open(&group, node.memory_bytes)?;
    // One that boots keeps the limit that it has: a fault may have set it. A new one has none.
    if is_new && node.memory_bytes.is_some() {
        memory.give_back()?;
    }
    let members = open_members(&group)?;
    let outside = open_members(CGROUPS)?;
    join(&members)?;
    unshare(CloneFlags::CLONE_NEWCGROUP).doing(|| "make a namespace of control groups".to_owned())?;
    join(&outside)?;
    Ok((members, memory))
}

/// Opens what takes the numbers of the processes that are to be in a control group.
fn open_members(group: &str) -> Result<File> {
    let members = format!("{group}/cgroup.procs");
    OpenOptions::new().write(true).open(&members).doing(|| format!("open {members}"))
}

/// Puts the calling process into a control group.
fn join(mut members: &File) -> Result<()> {
    members.write_all(b"0").doing(|| "join a control group".to_owned())
}

/// Shows the node its control group, as container engines do: programs take from it how much memory they may use.
fn mount_cgroup(target: &str) -> Result<()> {
    mount_over("cgroup2", target, "")?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(None::<&str>, target, None::<&str>, read_only, None::<&str>).doing(|| format!("make {target} read-only"))
}

/// Mounts the file system of the node's disk where the node is put together.
fn mount_disk(node: &Interior) -> Result<()> {
    let Some(Disk { number, mount: Some(_), .. }) = node.disk else { return Ok(()) };
    let device = images::block_device(number);
    make_directory(DISK)?;
    // Its unused parts are not to be written to in the background, as after mkfs.
    let options = Some("noinit_itable");
    mount(Some(device.as_str()), DISK, Some("ext4"), MsFlags::empty(), options)
        .doing(|| format!("mount {device}, the disk of node {}", node.name))
}

/// Where all that a node writes goes: its disk, or memory.
fn writable(node: &Interior) -> &'static str {
    match &node.disk {
        Some(Disk { mount: Some(path), .. }) if path == "/" => DISK,
        _ => WORKSHOP,
    }
}

/// Puts a disk that is not for all that the node writes where it is wanted.
fn bind_disk(node: &Interior, root: &str) -> Result<()> {
    match &node.disk {
        Some(Disk { mount: Some(path), .. }) if path != "/" => bind(DISK, &inside(root, path)),
        _ => Ok(()),
    }
}

/// Where the node's tree keeps what differs from the layers below.
fn upper_layer(node: &Interior) -> String {
    format!("{}/upper", writable(node))
}

fn mount_root(node: &Interior, ground: &Ground) -> Result<String> {
    let root = format!("{WORKSHOP}/root");
    let upper = upper_layer(node);
    let work = format!("{}/work", writable(node));
    let etc = format!("{upper}/etc");
    for directory in [&root, &upper, &etc, &work] {
        make_directory(directory)?;
    }
    let hostname = format!("{etc}/hostname");
    write(&hostname, format!("{}\n", node.name)).doing(|| format!("write {hostname}"))?;
    let layers = format!("lowerdir={},upperdir={upper},workdir={work}", images::lower_layers(node));
    let flags = if ground.has_owners(node) { MsFlags::empty() } else { MsFlags::MS_NOSUID };
    mount_at("overlay", &root, flags, &layers)?;
    Ok(root)
}

/// Puts a file that the plan has into the node, whose root is the present one.
fn write_own_file(file: &OwnFile) -> Result<()> {
    let OwnFile { path, mode, owner, .. } = file;
    match file.contents()? {
        None => make_directory(path)?,
        Some(contents) => {
            if let Some(directory) = Path::new(path).parent() {
                make_directory(&directory.to_string_lossy())?;
            }
            write(path, contents).doing(|| format!("write {path}"))?;
        }
    }
    let User { uid, gid, .. } = passwd::find(owner).doing(|| format!("owner of {path}"))?;
    // The owner first, since a change of it takes set-id bits away.
    chown(path, Some(uid), Some(gid)).doing(|| format!("chown {path}"))?;
    set_mode(path, *mode)
}

/// Does what makes files with the permissions that it says, whatever the mask is.
fn with_exact_modes<T>(make: impl FnOnce() -> T) -> T {
    let mask = umask(Mode::empty());
    let made = make();
    umask(mask);
    made
}

fn bind_own_directories(node: &Interior, ground: &Ground, place_of: impl Fn(&str) -> String) -> Result<()> {
    let home = (!ground.has_owners(node)).then_some(("root", 0o700));
    for (name, mode) in OWN_DIRECTORIES.into_iter().chain(home) {
        let place = if IN_MEMORY.contains(&name) { WORKSHOP } else { writable(node) };
        let own = format!("{place}/own/{name}");
        make_directory_of(&own, mode)?;
        bind(&own, &place_of(&format!("/{name}")))?;
    }
    Ok(())
}

fn fill_dev(node: &Interior, root: &str) -> Result<()> {
    for (name, mode) in [("net", 0o755), ("shm", 0o1777), ("pts", 0o755)] {
        make_directory_of(&format!("{root}/dev/{name}"), mode)?;
    }
    let make = |name: &str, kind, mode, device| {
        let path = format!("{root}/dev/{name}");
        mknod(path.as_str(), kind, Mode::from_bits_truncate(mode), device).doing(|| format!("make {path}"))
    };
    for (name, major, minor) in DEVICES {
        make(name, SFlag::S_IFCHR, 0o666, makedev(major, minor))?;
    }
    if let Some(Disk { number, .. }) = node.disk {
        let device = makedev(DISK_MAJOR, u64::from(number) * DISK_MINORS);
        make(DISK_NAME, SFlag::S_IFBLK, 0o660, device)?;
    }
    for (target, name) in DEVICE_LINKS {
        let path = format!("{root}/dev/{name}");
        symlink(target, &path).doing(|| format!("make {path}"))?;
    }
    mount_at("devpts", &format!("{root}/dev/pts"), MsFlags::empty(), "newinstance,gid=5,mode=620,ptmxmode=666")
}

/// Hides the run directory, whose path may lie where nothing else of the node hides it.
fn cover_run_directory(path: &str) -> Result<()> {
    if Path::new(path).exists() {
        let empty = format!("{WORKSHOP}/own/nothing");
        make_directory(&empty)?;
        bind(&empty, path)?;
    }
    Ok(())
}

/// Puts directories of the machine over the node's overlay and its own directories.
fn bind_from_machine(node: &Interior, root: &str) -> Result<()> {
    for (number, Bind { path, writable }) in node.binds.iter().enumerate() {
        let target = inside(root, path);
        if *writable {
            bind(path, &target)?;
            continue;
        }
        let [upper, work] = ["upper", "work"].map(|name| format!("{WORKSHOP}/binds/{number}/{name}"));
        [&upper, &work, &target].into_iter().try_for_each(|directory| make_directory(directory))?;
        // By its descriptor, since a path may have in it what separates options.
        let directory = File::open(path).doing(|| format!("open {path}"))?;
        let lower = format!("/proc/self/fd/{}", directory.as_raw_fd());
        mount_at("overlay", &target, MsFlags::empty(), &format!("lowerdir={lower},upperdir={upper},workdir={work}"))?;
    }
    Ok(())
}

/// Puts volumes where the node has them, over all the rest.
fn bind_volumes(node: &Interior, root: &str) -> Result<()> {
    node.volumes.iter().try_for_each(|Volume { name, path, .. }| {
        let target = inside(root, path);
        match name {
            Some(name) => bind(&volumes::contents(name), &target),
            None => make_directory(&target),
        }
    })
}

/// Makes `root` the root and lets go of the old one.
fn change_root(root: &str) -> Result<()> {
    chdir(root).doing(|| format!("enter {root}"))?;
    // The old root is stacked onto the new one and taken off again: pivot_root(2), section "pivot_root(".", ".")".
    pivot_root(".", ".").doing(|| "change the root".to_owned())?;
    umount2(".", MntFlags::MNT_DETACH).doing(|| "detach the old root".to_owned())?;
    chdir("/").doing(|| "enter the new root".to_owned())
}

fn bind(from: &str, to: &str) -> Result<()> {
    let bind = || mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    over_directory(to, bind, || format!("bind {from} on {to}"))
}

/// Mounts one file system on a directory, which is made where it is not there.
fn mount_over(kind: &str, to: &str, options: &str) -> Result<()> {
    let mount = || mount(Some(kind), to, Some(kind), MsFlags::empty(), Some(options));
    over_directory(to, mount, || format!("mount {kind} on {to}"))
}

/// Most of the directories are there, which nobody has to ask before.
fn over_directory(to: &str, mount: impl Fn() -> nix::Result<()>, what: impl FnOnce() -> String) -> Result<()> {
    match mount() {
        Err(Errno::ENOENT) => {
            make_directory(to)?;
            mount()
        }
        mounted => mounted,
    }
    .doing(what)
}

/// Sets permissions whatever the mask is.
fn set_mode(path: &str, mode: u32) -> Result<()> {
    set_permissions(path, Permissions::from_mode(mode)).doing(|| format!("chmod {path}"))
}

fn make_directory(path: &str) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path).doing(|| format!("make {path}"))
}

/// Makes a directory with these permissions, and what it is in with the usual ones.
fn make_directory_of(path: &str, mode: u32) -> Result<()> {
    let make = || mkdir(path, Mode::from_bits_truncate(mode));
    let made = match (make(), Path::new(path).parent()) {
        (Err(Errno::ENOENT), Some(parent)) => {
            make_directory(&parent.to_string_lossy())?;
            make()
        }
        (made, _) => made,
    };
    match made {
        // On a disk, or by a node of an earlier run.
        Err(Errno::EEXIST) => set_mode(path, mode),
        made => made.doing(|| format!("make {path}")),
    }
}
