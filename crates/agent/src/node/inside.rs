//! Paths of a node's root while it is not yet the root.
//!
//! In the tree of an image any directory may be a symbolic link, such as /lib or /var/run, and an absolute one would lead
//! from here to the outer tree instead of the node's. So links are followed here, as the node will see them.

use std::fs::read_link;
use std::path::{Component, Path, PathBuf};

/// Links that are followed before the path is taken as it is, as in the kernel.
const LINKS_MAX: u32 = 40;

/// Where `path`, an absolute path of the node, is in the present tree, given that of the node's root.
pub fn inside(root: &str, path: &str) -> String {
    let mut links = 0;
    let mut ahead: Vec<PathBuf> = names(Path::new(path));
    let mut found = PathBuf::from(root);
    while let Some(name) = ahead.pop() {
        if name == Path::new("..") {
            if found != Path::new(root) {
                found.pop();
            }
            continue;
        }
        match read_link(found.join(&name)) {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                if target.is_absolute() {
                    found = PathBuf::from(root);
                }
                ahead.extend(names(&target));
            }
            _ => found.push(name),
        }
    }
    found.to_string_lossy().into_owned()
}

/// The names in a path, the last one first.
fn names(path: &Path) -> Vec<PathBuf> {
    let of = |part: Component| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all};
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_where_the_node_will_see_them() {
        let top = std::env::temp_dir().join(format!("dilaton-inside-{}", std::process::id()));
        let root = top.join("root");
        create_dir_all(root.join("usr/lib")).unwrap();
        for (target, name) in [("/usr/lib", "lib"), ("usr/../../../usr", "far"), ("loop", "loop"), ("/run", "var")] {
            symlink(target, root.join(name)).unwrap();
        }
        let root = root.to_str().unwrap();
        let found = |path| inside(root, path).strip_prefix(root).unwrap().to_owned();
        assert_eq!(found("/lib/modules"), "/usr/lib/modules");
        assert_eq!(found("/far/lib"), "/usr/lib");
        assert_eq!(found("/var/log"), "/run/log");
        assert_eq!(found("/new/place"), "/new/place");
        assert_eq!(found("/../.."), "");
        assert_eq!(found("/loop"), "/loop");
        remove_dir_all(&top).unwrap();
    }
}
