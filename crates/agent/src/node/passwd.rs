//! Users and groups of a node, read from its `/etc/passwd` and `/etc/group`.
//!
//! A static program cannot ask the C library's name services, which load shared libraries.

use std::fs::read_to_string;

use crate::error::{Error, Result};

/// Whom a process runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User number.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All groups, the primary one first.
    pub groups: Vec<u32>,
}

/// Finds a user by name or number in the present root.
///
/// # Errors
/// There is no user of that name; a number is always accepted.
pub fn find(user: &str) -> Result<User> {
    let passwd = read_to_string("/etc/passwd").unwrap_or_default();
    let group = read_to_string("/etc/group").unwrap_or_default();
    find_in(&passwd, &group, user)
}

/// `user` may be followed by a colon and a group, as in images; then that is the only one.
fn find_in(passwd: &str, group: &str, user: &str) -> Result<User> {
    if let Some((user, of)) = user.split_once(':') {
        let User { uid, .. } = find_in(passwd, group, user)?;
        let gid = find_group(group, of)?;
        return Ok(User { uid, gid, groups: vec![gid] });
    }
    let number = user.parse::<u32>().ok();
    let account = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let (name, uid, gid) = (*fields.first()?, fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
        (name == user || Some(uid) == number).then_some((name, uid, gid))
    });
    match (account, number) {
        (Some((name, uid, gid)), _) => Ok(User { uid, gid, groups: groups_of(group, name, gid) }),
        (None, Some(uid)) => Ok(User { uid, gid: uid, groups: vec![uid] }),
        (None, None) => Err(Error::new(format!("user {user}: not in the node's /etc/passwd"))),
    }
}

fn find_group(group: &str, name: &str) -> Result<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok()).flatten()
    };
    let missing = || Error::new(format!("group {name}: not in the node's /etc/group"));
    group.lines().find_map(of_line).or_else(|| name.parse().ok()).ok_or_else(missing)
}

fn groups_of(group: &str, name: &str, primary: u32) -> Vec<u32> {
    let others = group.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let gid = fields.get(2)?.parse().ok()?;
        let is_member = fields.get(3)?.split(',').any(|member| member == name);
        (is_member && gid != primary).then_some(gid)
    });
    std::iter::once(primary).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nfrr:x:101:102::/nonexistent:/bin/false\n";
    const GROUP: &str = "root:x:0:\nfrr:x:102:\nvty:x:103:frr,root\nadm:x:4:frr\n";

    #[test]
    fn a_user_is_found_by_name_and_by_number_with_all_groups() {
        let frr = User { uid: 101, gid: 102, groups: vec![102, 103, 4] };
        assert_eq!(find_in(PASSWD, GROUP, "frr").unwrap(), frr);
        assert_eq!(find_in(PASSWD, GROUP, "101").unwrap(), frr);
    }

    #[test]
    fn a_group_may_follow_by_name_or_number() {
        let found = |user| find_in(PASSWD, GROUP, user).unwrap();
        assert_eq!(found("frr:vty"), User { uid: 101, gid: 103, groups: vec![103] });
        assert_eq!(found("4242:17"), User { uid: 4242, gid: 17, groups: vec![17] });
        let error = find_in(PASSWD, GROUP, "frr:wheel").unwrap_err().to_string();
        assert_eq!(error, "group wheel: not in the node's /etc/group");
    }

    #[test]
    fn a_number_needs_no_account_but_a_name_does() {
        assert_eq!(find_in(PASSWD, GROUP, "4242").unwrap().gid, 4242);
        let error = find_in(PASSWD, GROUP, "alice").unwrap_err().to_string();
        assert_eq!(error, "user alice: not in the node's /etc/passwd");
    }
}
