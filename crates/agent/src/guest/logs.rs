//! The machine's /var/log, emptied: nodes have its directories, which daemons expect, and none of its files.
//!
//! Daemons open their logs to append. Those of the machine are no node's, and most are of users whose files the jail's
//! may not read, so that the overlay could not copy them. A directory that a lower layer marks as opaque hides what the
//! layers below it have there.

use std::fs::{create_dir_all, read_dir, set_permissions, Metadata, Permissions};
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};

use nix::errno::Errno;
use nix::NixPath;

use crate::error::{Doing, Result};

const LOGS: &str = "/var/log";
/// Whom all users are that the jail does not have.
const NOBODY: u32 = 65534;

/// Empties /var/log in the layer `common` of an overlay, which lies above the machine's root.
///
/// # Errors
/// The kernel refuses something.
pub fn hide(common: &str) -> Result<()> {
    let own = format!("{common}{LOGS}");
    create_dir_all(&own).doing(|| format!("make {own}"))?;
    make_opaque(&own)?;
    // A machine without logs, or with logs that may not be listed, has no directories to show.
    for entry in read_dir(LOGS).into_iter().flatten().flatten() {
        let Some(machines) = entry.metadata().ok().filter(Metadata::is_dir) else { continue };
        let path = format!("{own}/{}", entry.file_name().to_string_lossy());
        // Where it is not known whose it is, anybody may write there.
        let (owner, mode) = match machines.uid() {
            NOBODY => (None, 0o1777),
            uid => (Some(uid), machines.mode() & 0o7777),
        };
        create_dir_all(&path)
            .and_then(|()| chown(&path, owner, owner.map(|_| machines.gid())))
            .and_then(|()| set_permissions(&path, Permissions::from_mode(mode)))
            .doing(|| format!("make {path}"))?;
    }
    Ok(())
}

fn make_opaque(directory: &str) -> Result<()> {
    let (name, value) = (c"trusted.overlay.opaque", c"y");
    directory
        // SAFETY: path and name end with a zero byte, the value has one byte at least; the kernel keeps none of them.
        .with_nix_path(|path| unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), 1, 0) })
        .and_then(Errno::result)
        .map(drop)
        .doing(|| format!("make {directory} opaque"))
}
