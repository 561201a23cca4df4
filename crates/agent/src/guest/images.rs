//! The file trees of images: each is a block device of the guest with a squashfs, mounted once, read-only, for all nodes.
//!
//! A node whose tree is an image has nothing of the machine's root below its own layer. What nodes have in common is then
//! /etc/hosts alone: the empty /var/log that hides the machine's logs would hide the image's own.

use std::collections::BTreeSet;
use std::fs::{copy, create_dir_all};

use nix::mount::{mount, MsFlags};

use crate::error::{Doing, Result};
use crate::guest::{modules::Modules, COMMON};
use crate::plan::interior::{Image, Interior};

/// What nodes with images have in common above their image.
const COMMON_OF_IMAGES: &str = "/run/common-of-images";
/// Where images are mounted, by the number of their device.
const PLACE: &str = "/run/images";

/// Mounts the images of these nodes.
///
/// # Errors
/// The kernel has no squashfs, or refuses one of them.
pub fn mount_all(nodes: &[&Interior]) -> Result<()> {
    let devices: BTreeSet<u32> = nodes.iter().filter_map(|node| device(node)).collect();
    if devices.is_empty() {
        return Ok(());
    }
    Modules::find()?.load("squashfs")?;
    let hosts = |common| format!("{common}/etc/hosts");
    let etc = format!("{COMMON_OF_IMAGES}/etc");
    create_dir_all(&etc).doing(|| format!("make {etc}"))?;
    copy(hosts(COMMON), hosts(COMMON_OF_IMAGES)).doing(|| format!("write {}", hosts(COMMON_OF_IMAGES)))?;
    devices.into_iter().try_for_each(|number| {
        let (source, place) = (block_device(number), place(number));
        create_dir_all(&place).doing(|| format!("make {place}"))?;
        mount(Some(source.as_str()), place.as_str(), Some("squashfs"), MsFlags::MS_RDONLY, None::<&str>)
            .doing(|| format!("mount {source}, an image"))
    })
}

/// The lower layers of a node's root, as overlayfs takes them, the uppermost first.
pub fn lower_layers(node: &Interior) -> String {
    match device(node) {
        Some(number) => format!("{COMMON_OF_IMAGES}:{}", place(number)),
        None => format!("{COMMON}:/"),
    }
}

/// Where the tree of a node's image is; `None`: it has the machine's.
pub fn tree(node: &Interior) -> Option<String> {
    device(node).map(place)
}

/// Whether the file tree of a node is an image.
pub fn is_image(node: &Interior) -> bool {
    device(node).is_some()
}

/// The path of a block device of the guest.
pub fn block_device(number: u32) -> String {
    format!("/dev/ubd{}", char::from(b'a' + number as u8))
}

fn device(node: &Interior) -> Option<u32> {
    match node.image {
        Image::Host {} => None,
        Image::Stored { device, .. } => Some(device),
    }
}

fn place(number: u32) -> String {
    format!("{PLACE}/{number}")
}
