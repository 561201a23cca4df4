//! What a node of an earlier run had written, put back: the archive that `changes.rs` made of it, into the memory of the node,
//! before anything is mounted there.
//!
//! The archive comes from a node whose root may have written it as he likes, and the agent reads it as root of the guest. So
//! it is unpacked with the node's memory as the root directory: no name, and no link on the way, leads out of it.
//!
//! It has headers of tar (POSIX.1-2001) with all that matters in extended ones. An overlay's marks of what was removed are
//! there as they were, devices 0:0 and an attribute, and mean the same above the same layers.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::{create_dir_all, hard_link, set_permissions, File, Permissions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{lchown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{makedev, mknod, utimensat, Mode, SFlag, UtimensatFlags};
use nix::sys::time::TimeSpec;
use nix::unistd::{chdir, chroot, fchdir};

use crate::error::{Doing, Error, Result};

const BLOCK: usize = 512;
/// Extended headers are short: names and attributes.
const RECORDS_MAX: u64 = 1 << 24;

/// Unpacks an archive into a directory.
///
/// # Errors
/// It cannot be read, is not what `changes.rs` writes, or has no room there.
pub fn restore(archive: &str, into: &str) -> Result<()> {
    let file = File::open(archive).doing(|| format!("open {archive}"))?;
    let outside = File::open("/").doing(|| "open /".to_owned())?;
    chroot(into).and_then(|()| chdir("/")).doing(|| format!("make {into} the root"))?;
    let done = Archive { input: BufReader::with_capacity(1 << 16, file), directories: Vec::new() }.unpack();
    fchdir(outside.as_raw_fd()).and_then(|()| chroot(".")).doing(|| format!("leave {into}"))?;
    done.map_err(|error| Error::new(format!("{archive}: {error}")))
}

struct Archive<R: Read> {
    input: R,
    /// With the times that they get at last, since what comes into them changes these.
    directories: Vec<(PathBuf, i64)>,
}

/// A member of an archive.
struct Member {
    path: PathBuf,
    kind: u8,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    modified_s: i64,
    device: (u64, u64),
    target: PathBuf,
    attributes: Vec<(String, Vec<u8>)>,
}

impl<R: Read> Archive<R> {
    fn unpack(mut self) -> Result<()> {
        while let Some(member) = self.next()? {
            self.make(&member).map_err(|error| Error::new(format!("{}: {error}", member.path.display())))?;
        }
        self.directories.iter().try_for_each(|(path, modified_s)| set_time(path, *modified_s))
    }

    /// The next member; its contents follow in the input.
    fn next(&mut self) -> Result<Option<Member>> {
        let mut records = HashMap::new();
        loop {
            let Some(block) = self.block()? else { return Ok(None) };
            let size = number(&block[124..136])?;
            if block[156] != b'x' {
                return member(&block, size, &records).map(Some);
            }
            if size > RECORDS_MAX {
                return Err(Error::new("an extended header is too long"));
            }
            records = self.records(size)?;
        }
    }

    /// A header; none at the end.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        self.input.read_exact(&mut block).doing(|| "read a header".to_owned())?;
        Ok(block.iter().any(|&byte| byte != 0).then_some(block))
    }

    fn records(&mut self, size: u64) -> Result<HashMap<String, Vec<u8>>> {
        let mut bytes = vec![0; size as usize];
        self.input.read_exact(&mut bytes).doing(|| "read an extended header".to_owned())?;
        self.skip_padding(size)?;
        let mut found = HashMap::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (record, after) = first_record(rest).ok_or_else(|| Error::new("an extended header is damaged"))?;
            found.insert(String::from_utf8_lossy(record.0).into_owned(), record.1.to_vec());
            rest = after;
        }
        Ok(found)
    }

    fn make(&mut self, member: &Member) -> Result<()> {
        let path = Path::new("/").join(&member.path);
        if let Some(parent) = path.parent() {
            create_dir_all(parent).doing(|| "make its directory".to_owned())?;
        }
        match member.kind {
            b'5' => {
                create_dir_all(&path).doing(|| "make it".to_owned())?;
                self.directories.push((path.clone(), member.modified_s));
            }
            b'1' => return hard_link(Path::new("/").join(&member.target), &path).doing(|| "link it".to_owned()),
            b'2' => symlink(&member.target, &path).doing(|| "link it".to_owned())?,
            b'0' => self.contents(&path, member.size)?,
            b'3' | b'4' | b'6' => {
                let kind = match member.kind {
                    b'3' => SFlag::S_IFCHR,
                    b'4' => SFlag::S_IFBLK,
                    _ => SFlag::S_IFIFO,
                };
                let device = makedev(member.device.0, member.device.1);
                mknod(&path, kind, Mode::empty(), device).doing(|| "make it".to_owned())?;
            }
            other => return Err(Error::new(format!("a member of kind {other}"))),
        }
        // The owner first, since a change of it takes set-id bits and capabilities away.
        lchown(&path, Some(member.uid), Some(member.gid)).doing(|| "give it its owner".to_owned())?;
        if member.kind != b'2' {
            set_permissions(&path, Permissions::from_mode(member.mode)).doing(|| "set its permissions".to_owned())?;
        }
        member.attributes.iter().try_for_each(|(name, value)| set_attribute(&path, name, value))?;
        set_time(&path, member.modified_s)
    }

    /// Writes a file, without what is 0 in it: that takes no memory.
    fn contents(&mut self, path: &Path, size: u64) -> Result<()> {
        let mut file = File::create(path).doing(|| "make it".to_owned())?;
        file.set_len(size).doing(|| "make room for it".to_owned())?;
        let (mut left, mut buffer) = (size, vec![0; 1 << 12]);
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let part = &mut buffer[..most];
            self.input.read_exact(part).doing(|| "read it".to_owned())?;
            if part.iter().all(|&byte| byte == 0) {
                file.seek(SeekFrom::Current(most as i64)).doing(|| "write it".to_owned())?;
            } else {
                file.write_all(part).doing(|| "write it".to_owned())?;
            }
            left -= most as u64;
        }
        self.skip_padding(size)
    }

    fn skip_padding(&mut self, size: u64) -> Result<()> {
        let over = (size % BLOCK as u64) as usize;
        let mut padding = [0; BLOCK];
        self.input.read_exact(&mut padding[..(BLOCK - over) % BLOCK]).doing(|| "read to the end of a block".to_owned())
    }
}

/// What a header and the extended one before it say.
fn member(block: &[u8; BLOCK], size: u64, records: &HashMap<String, Vec<u8>>) -> Result<Member> {
    let text = |name: &str| records.get(name).map(Vec::as_slice);
    let of = |name: &str| match text(name) {
        Some(digits) => std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok()),
        None => None,
    };
    let path = text("path").ok_or_else(|| Error::new("a member has no extended header"))?;
    let owner = |name| of(name).and_then(|number| u32::try_from(number).ok()).ok_or_else(|| Error::new("no owner"));
    let attributes = records
        .iter()
        .filter_map(|(name, value)| name.strip_prefix("SCHILY.xattr.").map(|name| (name.to_owned(), value.clone())));
    Ok(Member {
        path: PathBuf::from(OsStr::from_bytes(path)),
        kind: block[156],
        mode: number(&block[100..108])? as u32,
        uid: owner("uid")?,
        gid: owner("gid")?,
        size: of("size").unwrap_or(size),
        modified_s: number(&block[136..148])? as i64,
        device: (number(&block[329..337])?, number(&block[337..345])?),
        target: PathBuf::from(OsStr::from_bytes(text("linkpath").unwrap_or_default())),
        attributes: attributes.collect(),
    })
}

/// The name and value of a record.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The first record of an extended header, and what comes after it.
fn first_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = bytes.iter().position(|&byte| byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    Some(((&record[..equals], &record[equals + 1..]), &bytes[length..]))
}

/// An octal number of a header; nothing is 0.
fn number(field: &[u8]) -> Result<u64> {
    let digits: String = field.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect();
    let digits = digits.trim();
    if digits.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(digits, 8).map_err(|_| Error::new("a header is damaged"))
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    let doing = || format!("give it {name}");
    let place = CString::new(path.as_os_str().as_bytes()).map_err(std::io::Error::from).doing(doing)?;
    let word = CString::new(name).map_err(std::io::Error::from).doing(doing)?;
    // SAFETY: both names end with NUL, and the value has that length.
    let done = unsafe { libc::lsetxattr(place.as_ptr(), word.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error()).doing(doing)
    }
}

fn set_time(path: &Path, modified_s: i64) -> Result<()> {
    let time = TimeSpec::new(modified_s, 0);
    utimensat(None, path, &time, &time, UtimensatFlags::NoFollowSymlink).doing(|| "set its time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(bytes: &[u8]) -> Result<()> {
        Archive { input: bytes, directories: Vec::new() }.unpack()
    }

    #[test]
    fn what_no_node_packs_is_refused() {
        for (bytes, why) in
            [(vec![], "read a header"), (vec![1; BLOCK], "a header is damaged"), (vec![0; BLOCK - 1], "read a header")]
        {
            let error = unpacked(&bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(unpacked(&[0; BLOCK]).is_ok());
    }

    #[test]
    fn records_are_read_by_their_own_length() {
        let ((name, value), rest) = first_record(b"13 path=a b\n\n9 uid=70\n").unwrap();
        assert_eq!((name, value, rest), (&b"path"[..], &b"a b\n"[..], &b"9 uid=70\n"[..]));
        for damaged in [&b"99 path=a\n"[..], b"path=a\n", b"9 path=a b\n", b"2 path=a\n"] {
            assert!(first_record(damaged).is_none());
        }
    }
}
