//! What the nodes of a guest stand on, which is the same for all of them and found out once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nix::sys::stat::stat;

use crate::error::{Doing, Result};
use crate::guest::{images, modules};
use crate::node::inside::inside;
use crate::plan::interior::Interior;

/// What nodes stand on.
pub struct Ground<'a> {
    /// The run directory, in the guest's own root.
    pub run_dir: &'a str,
    /// The directory of the modules of all kernels.
    pub modules: PathBuf,
    machine_has_owners: bool,
    /// Where paths lead in trees of which nothing was changed, by the layers of these.
    places: RefCell<HashMap<(String, String), String>>,
}

impl<'a> Ground<'a> {
    /// Finds out what can be found out before there is a node.
    ///
    /// # Errors
    /// There are no modules, or no root.
    pub fn find(run_dir: &'a str) -> Result<Self> {
        let modules = modules::directory()?;
        let modules = modules.parent().map(Path::to_owned).unwrap_or(modules);
        let machine_has_owners = stat("/").doing(|| "look at /".to_owned())?.st_uid == 0;
        Ok(Self { run_dir, modules, machine_has_owners, places: RefCell::default() })
    }

    /// Whether the files of the node's tree belong to whom they should. Those of an image do. Those of the machine's root user
    /// are root's here too if it is root's jail. In the jail of an ordinary user they appear as those
    /// of nobody: programs like mount, with its set-user-ID bit, would run as nobody even for root, so there the bit has no
    /// effect; and root's home cannot be read, so there root has one of its own.
    pub fn has_owners(&self, node: &Interior) -> bool {
        images::is_image(node) || self.machine_has_owners
    }

    /// Where `path`, an absolute path of the node, is in the present tree, given that of the node's root, which has the same
    /// place for all nodes. The links on the way are those of the layers below, but for a node that may have changed them before.
    pub fn place(&self, node: &Interior, root: &str, path: &str) -> String {
        if node.written.is_some() || node.disk.is_some() {
            return inside(root, path);
        }
        let mut places = self.places.borrow_mut();
        let key = (images::lower_layers(node), path.to_owned());
        places.entry(key).or_insert_with(|| inside(root, path)).clone()
    }
}
