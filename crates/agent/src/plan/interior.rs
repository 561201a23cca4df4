//! The plan as the inits of nodes need it: what is in nodes, without the network between them.
//!
//! This part of the document is read alone and first, and the rest when all inits are there: a large network is tens of
//! megabytes of routes. Who makes the nodes is told of each in the same words (`guest/maker.rs`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::{Guest, Process};

/// The part of the document that is read first; the rest, and unknown fields, are [`crate::plan::Plan`]'s.
#[derive(Debug, Deserialize)]
pub struct Interiors {
    /// The dilated kernels.
    pub guests: Vec<Guest>,
    /// The emulated machines.
    pub nodes: Vec<Interior>,
    /// The lines of every node's /etc/hosts.
    pub hosts: Vec<HostsEntry>,
    /// The programs to run.
    pub processes: Vec<Process>,
}

/// What is in an emulated machine.
#[derive(Debug, Deserialize, Serialize)]
pub struct Interior {
    /// Its name, which is also its host name.
    pub name: String,
    /// The guest that holds it.
    pub guest: String,
    /// Where its file tree comes from.
    pub image: Image,
    /// Its network interfaces, of which only the names matter.
    pub interfaces: Vec<Named>,
    /// Files of its own, beside those of its file tree.
    pub files: Vec<OwnFile>,
    /// What it sees of the machine as it is.
    pub binds: Vec<Bind>,
    /// Directories that it shares with other nodes, or of which its image says that they are there.
    pub volumes: Vec<Volume>,
    /// Its CPU, where that is a share of the guest's.
    pub cpu: Option<Cpu>,
    /// Values to write below /proc/sys.
    pub sysctls: BTreeMap<String, String>,
    /// What its programs may take.
    pub memory_bytes: Option<u64>,
    /// Its block device.
    pub disk: Option<Disk>,
    /// The archive of what it had written in memory in an earlier run, a file of the machine.
    pub written: Option<String>,
}

impl Interior {
    /// Whether a sysctl belongs to one interface of the node and can be set only once that exists.
    pub fn is_of_interface(&self, key: &str) -> bool {
        let part = key.split('/').nth(3);
        part.is_some_and(|part| self.interfaces.iter().any(|interface| interface.name == part))
    }
}

/// Where a node's file tree comes from.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Image {
    /// The machine's own root.
    Host {},
    /// An image, which is a block device of the guest.
    Stored {
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "digest")]
        _digest: String,
        #[serde(rename = "file")]
        _file: String,
        /// Which of the guest's it is.
        device: u32,
    },
}

/// An interface's name in its node.
#[derive(Debug, Deserialize, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
}

/// The CPU of a node that is a share of its guest's.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Among those of its guest, from 1.
    pub number: u64,
    /// Speed in cores of the host, over the denominator.
    pub numerator: u64,
    /// See there.
    pub denominator: u64,
}

/// A block device of a node.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Which of the guest's it is.
    pub number: u32,
    #[serde(rename = "model")]
    _model: serde_json::Value,
    #[serde(rename = "parameters")]
    _parameters: serde_json::Value,
    #[serde(rename = "size_bytes")]
    _size_bytes: u64,
    #[serde(rename = "volatile_cache")]
    _volatile_cache: serde_json::Value,
    #[serde(rename = "image")]
    _image: Option<String>,
    #[serde(rename = "contents")]
    _contents: Option<String>,
    /// Where its file system is, `/` being all that the node writes.
    pub mount: Option<String>,
}

/// A file of a node, or a directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFile {
    /// Where it is in the node.
    pub path: String,
    /// What is in it; without this and `hex` it is a directory.
    pub text: Option<String>,
    /// What is in it, two digits a byte, where that is no text.
    pub hex: Option<String>,
    /// Its permissions.
    pub mode: u32,
    /// Whose it is, as users of programs are written.
    pub owner: String,
}

impl OwnFile {
    /// What is in it; `None`: it is a directory.
    ///
    /// # Errors
    /// The digits are none.
    pub fn contents(&self) -> Result<Option<Vec<u8>>> {
        let Some(digits) = &self.hex else { return Ok(self.text.clone().map(String::into_bytes)) };
        let byte = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes.map(Some).ok_or_else(|| Error::new(format!("plan.json: {}: not hexadecimal", self.path)))
    }
}

/// A directory of the machine, at its own path.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// Where it is, there and in the node.
    pub path: String,
    /// Whether what the node writes there goes to the machine, not into the node's memory.
    pub writable: bool,
}

/// A directory that nodes share.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// The same for those that share it; `None`: it is the node's own, and only has to be there.
    pub name: Option<String>,
    /// Where it is in the node.
    pub path: String,
    /// The archive of what was written to it in an earlier run, a file of the machine.
    pub written: Option<String>,
}

/// A line of /etc/hosts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsEntry {
    /// The address.
    pub address: String,
    /// The names, the canonical one first.
    pub names: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_file_is_text_or_bytes_and_a_directory_has_neither() {
        let file = |fields: &str| -> OwnFile {
            serde_json::from_str(&format!(r#"{{"path": "/a", "mode": 420, "owner": "root", {fields}}}"#)).unwrap()
        };
        assert_eq!(file(r#""text": "a\n""#).contents().unwrap().unwrap(), b"a\n");
        assert_eq!(file(r#""hex": "00ff7f""#).contents().unwrap().unwrap(), [0, 255, 127]);
        assert!(file(r#""text": null, "hex": null"#).contents().unwrap().is_none());
        for wrong in ["0", "0g", "ä"] {
            assert!(file(&format!(r#""hex": "{wrong}""#)).contents().is_err());
        }
    }

    #[test]
    fn sysctls_of_an_interface_wait_for_it() {
        let node: Interior = serde_json::from_value(serde_json::json!({
            "name": "a", "guest": "guest0", "image": {"kind": "host"},
            "interfaces": [{"name": "eth0", "mtu": 1500}], "routes": [],
            "files": [], "binds": [], "volumes": [], "cpu": null, "sysctls": {}, "memory_bytes": null, "disk": null,
            "written": null
        }))
        .unwrap();
        assert!(node.is_of_interface("net/ipv6/conf/eth0/disable_ipv6"));
        assert!(!node.is_of_interface("net/ipv6/conf/all/forwarding"));
        assert!(!node.is_of_interface("net/ipv4/ip_forward"));
    }
}
