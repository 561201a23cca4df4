//! Volumes: directories that nodes of a guest share, in its memory.
//!
//! One begins with what the image of the first node that has it has at its place there, as container engines do it; where the
//! tree is the machine's, or has no such directory, it begins empty. Nothing is copied for that: the volume is an overlay above
//! that directory. It is made before any node, whose mounts are its own. What was written to one in an earlier run is there
//! at once.

use std::collections::BTreeSet;
use std::fs::{create_dir_all, metadata, set_permissions, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{chown, MetadataExt};
use std::path::Path;

use nix::mount::MsFlags;

use crate::error::{Doing, Result};
use crate::guest::{images, mount_at};
use crate::node::inside::inside;
use crate::node::restore;
use crate::plan::interior::{Interior, Volume};

/// Where volumes are, each by its name.
pub const PLACE: &str = "/run/volumes";

/// Makes the volumes of these nodes, the first of which to have one says what it begins with.
///
/// # Errors
/// The kernel refuses one of them.
pub fn make_all(nodes: &[&Interior]) -> Result<()> {
    create_dir_all(PLACE).doing(|| format!("make {PLACE}"))?;
    let mut made = BTreeSet::new();
    for node in nodes {
        for Volume { name, path, written } in &node.volumes {
            let Some(name) = name.as_deref().filter(|name| made.insert(*name)) else { continue };
            let contents = contents(name);
            create_dir_all(&contents).doing(|| format!("make {contents}"))?;
            if let Some(archive) = written {
                restore::restore(archive, PLACE)?;
            }
            let begins_with = images::tree(node).map(|tree| inside(&tree, path));
            if let Some(below) = begins_with.filter(|path| Path::new(path).is_dir()) {
                lay_above(name, &contents, &below)?;
            }
        }
    }
    Ok(())
}

/// Where the contents of a volume are while nodes are put together.
pub fn contents(name: &str) -> String {
    format!("{PLACE}/{name}/contents")
}

/// Lets the contents of a volume be those of a directory, and above them what is written.
fn lay_above(name: &str, contents: &str, below: &str) -> Result<()> {
    let [upper, work] = ["upper", "work"].map(|part| format!("{PLACE}/{name}/{part}"));
    let is_new = !Path::new(&upper).exists();
    for directory in [&upper, &work] {
        create_dir_all(directory).doing(|| format!("make {directory}"))?;
    }
    if is_new {
        // The uppermost directory is the upper layer's.
        let known = metadata(below).doing(|| format!("look at {below}"))?;
        chown(&upper, Some(known.uid()), Some(known.gid())).doing(|| format!("chown {upper}"))?;
        set_permissions(&upper, known.permissions()).doing(|| format!("chmod {upper}"))?;
    }
    // By its descriptor, since a path may have in it what separates options.
    let directory = File::open(below).doing(|| format!("open {below}"))?;
    let lower = format!("/proc/self/fd/{}", directory.as_raw_fd());
    mount_at("overlay", contents, MsFlags::empty(), &format!("lowerdir={lower},upperdir={upper},workdir={work}"))
}
