//! What a node has written, packed: this program, executed in the node, writes it as a tar archive to its standard output;
//! either what it has changed of its image, as one more layer of that, or all that it has written in memory, as it is, for a
//! node of a later run (`restore.rs`), or what was written to a volume, for one too.
//!
//! The upper layer of the node's overlay (`tree.rs`) has just what was changed, but it is mounted nowhere that a program of
//! the node could look at. So the node's init keeps it open, and it is read through the init's descriptor. No program of
//! the image takes part, since it may have no tar, or one that forgets capabilities.
//!
//! What was removed is a character device 0:0 there, and a directory that replaces one of the image is marked as opaque
//! (Documentation/filesystems/overlayfs.rst); in a layer both are whiteouts (OCI image specification, "Image Layer Filesystem
//! Changeset"). Names, owners and attributes go into extended headers (pax in POSIX.1-2001), which take any.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{read_dir, read_link, symlink_metadata, File, Metadata};
use std::io::{stdout, BufWriter, Read, Result as IoResult, StdoutLock, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};
use nix::unistd::dup3;

use crate::error::{Doing, Error, Result};

/// The first argument of this program when it does that.
pub const WORD: &str = "changes";

/// As `WORD`, for all that the node has written in memory.
pub const WORD_ALL: &str = "written";

/// As `WORD`, for what was written to a volume, whose name is the second argument.
pub const WORD_VOLUME: &str = "volume";

/// The first argument of this program when it has the guest's kernel write what it has in memory to its disks, and outputs
/// of programs to the machine.
pub const WORD_FLUSH: &str = "flush";

/// The init's descriptor of the upper layer.
const KEPT: RawFd = 900;
/// That of the directory with all that the node has in memory.
const KEPT_ALL: RawFd = 901;
/// That of the directory with all volumes of the guest.
const KEPT_VOLUMES: RawFd = 902;
/// What of that directory is written by the node's programs and worth keeping: not what begins anew with every boot.
const WRITTEN: [&str; 4] = ["upper", "own/tmp", "own/var/tmp", "own/root"];
/// Where it has the upper layers of directories of the machine.
const BINDS: &str = "binds";

/// What every node has of its own, whatever its image.
const OWN: &str = "etc/hostname";

const BLOCK: usize = 512;
const NAME_BYTES: usize = 100;
const OPAQUE: &str = "trusted.overlay.opaque";
/// What an overlay says of its own files, most of which is of no other overlay.
const OF_OVERLAY: &str = "trusted.overlay.";
/// What a file system that this kernel mounts does not have: files whose contents or names are in other places.
const ELSEWHERE: [&str; 2] = ["trusted.overlay.redirect", "trusted.overlay.metacopy"];

/// Has these descriptors be no others in the calling process, nor in what is forked from it, until [`keep`].
///
/// # Errors
/// They are in use.
pub fn reserve() -> Result<()> {
    for number in [KEPT, KEPT_ALL, KEPT_VOLUMES] {
        dup3(0, number, OFlag::O_CLOEXEC).doing(|| "reserve a descriptor".to_owned())?;
    }
    Ok(())
}

/// Keeps the upper layer of a node open for those who read it through the init, the directory of all that it has in memory, and
/// that of volumes, as long as the result is kept.
///
/// # Errors
/// The kernel refuses it.
pub fn keep([upper, all, volumes]: &[File; 3]) -> Result<[OwnedFd; 3]> {
    Ok([keep_as(upper, KEPT)?, keep_as(all, KEPT_ALL)?, keep_as(volumes, KEPT_VOLUMES)?])
}

fn keep_as(directory: &File, number: RawFd) -> Result<OwnedFd> {
    let kept = dup3(directory.as_raw_fd(), number, OFlag::O_CLOEXEC).doing(|| "keep a directory open".to_owned())?;
    // SAFETY: it was just made, and nothing else has that number.
    Ok(unsafe { OwnedFd::from_raw_fd(kept) })
}

/// Writes the layer.
///
/// # Errors
/// Something cannot be read, or nobody takes what is written.
pub fn write() -> Result<()> {
    let mut layer = Layer::of(KEPT, false);
    layer.directory(Path::new(""))?;
    layer.finish()
}

/// Writes all that the node has written in memory.
///
/// # Errors
/// As of `write`.
pub fn write_all() -> Result<()> {
    let mut layer = Layer::of(KEPT_ALL, true);
    let numbers = read_dir(layer.top.join(BINDS)).into_iter().flatten().flatten();
    let mut binds: Vec<PathBuf> = numbers.map(|entry| Path::new(BINDS).join(entry.file_name()).join("upper")).collect();
    binds.sort();
    for path in WRITTEN.iter().map(PathBuf::from).chain(binds) {
        if layer.top.join(&path).exists() {
            layer.entry(&path)?;
        }
    }
    layer.finish()
}

/// Writes what was written to a volume: its upper layer, or all that is in it, where it has nothing below.
///
/// # Errors
/// As of `write`; or the guest has no such volume.
pub fn write_volume(name: &str) -> Result<()> {
    let mut layer = Layer::of(KEPT_VOLUMES, true);
    let upper = Path::new(name).join("upper");
    let contents = Path::new(name).join("contents");
    layer.entry(if layer.top.join(&upper).exists() { &upper } else { &contents })?;
    layer.finish()
}

struct Layer<W: Write> {
    out: W,
    top: PathBuf,
    /// Whether it takes all as it is, instead of as a layer of an image has it.
    as_is: bool,
    /// Names of files that have several, by their numbers.
    linked: HashMap<u64, PathBuf>,
}

impl Layer<BufWriter<StdoutLock<'static>>> {
    fn of(kept: RawFd, as_is: bool) -> Self {
        let top = PathBuf::from(format!("/proc/1/fd/{kept}"));
        Self { out: BufWriter::new(stdout().lock()), top, as_is, linked: HashMap::new() }
    }

    fn finish(mut self) -> Result<()> {
        self.out.write_all(&[0; 2 * BLOCK]).and_then(|()| self.out.flush()).doing(|| "write".to_owned())
    }
}

impl<W: Write> Layer<W> {
    /// All that is in a directory, without itself.
    fn directory(&mut self, path: &Path) -> Result<()> {
        let doing = || format!("read /{}", path.display());
        let mut names: Vec<OsString> = read_dir(self.top.join(path))
            .and_then(|found| found.map(|entry| Ok(entry?.file_name())).collect())
            .doing(doing)?;
        names.sort();
        names.iter().try_for_each(|name| self.entry(&path.join(name)))
    }

    fn entry(&mut self, path: &Path) -> Result<()> {
        let doing = || format!("read /{}", path.display());
        let place = self.top.join(path);
        let about = symlink_metadata(&place).doing(doing)?;
        let kind = about.file_type();
        if kind.is_socket() || path == Path::new(OWN) {
            return Ok(());
        }
        if kind.is_char_device() && about.rdev() == 0 && !self.as_is {
            return self.whiteout(&path.with_file_name(prefixed(path.file_name().unwrap_or_default())), &about);
        }
        let mut attributes = attributes(&place).doing(doing)?;
        if let Some(name) = ELSEWHERE.iter().find(|name| attributes.iter().any(|(known, _)| known == *name)) {
            return Err(Error::new(format!("/{}: has {name}, whose meaning a layer cannot have", path.display())));
        }
        if self.as_is {
            attributes.retain(|(name, _)| name == OPAQUE || !name.starts_with(OF_OVERLAY));
        }
        if kind.is_dir() {
            self.header(path, b'5', 0, Path::new(""), &about, &attributes).doing(doing)?;
            if !self.as_is && attributes.iter().any(|(name, value)| name == OPAQUE && value == b"y") {
                self.whiteout(&path.join(".wh..wh..opq"), &about)?;
            }
            return self.directory(path);
        }
        if about.nlink() > 1 {
            if let Some(first) = self.linked.get(&about.ino()).cloned() {
                return self.header(path, b'1', 0, &first, &about, &[]).doing(doing);
            }
            self.linked.insert(about.ino(), path.to_owned());
        }
        if kind.is_file() {
            let file = File::open(&place).doing(doing)?;
            self.header(path, b'0', about.len(), Path::new(""), &about, &attributes)
                .and_then(|()| self.contents(file, about.len()))
                .doing(doing)
        } else if kind.is_symlink() {
            let target = read_link(&place).doing(doing)?;
            self.header(path, b'2', 0, &target, &about, &attributes).doing(doing)
        } else {
            let letter = if kind.is_fifo() { b'6' } else { b'3' + u8::from(kind.is_block_device()) };
            self.header(path, letter, 0, Path::new(""), &about, &attributes).doing(doing)
        }
    }

    fn whiteout(&mut self, path: &Path, about: &Metadata) -> Result<()> {
        self.header(path, b'0', 0, Path::new(""), about, &[]).doing(|| format!("write {}", path.display()))
    }

    /// A member's headers: one with what fits into no other, and its own.
    fn header(
        &mut self,
        path: &Path,
        kind: u8,
        size: u64,
        target: &Path,
        about: &Metadata,
        attributes: &[(String, Vec<u8>)],
    ) -> IoResult<()> {
        let mut records = Vec::new();
        record(&mut records, "path", path.as_os_str().as_bytes());
        for (name, number) in [("size", size), ("uid", about.uid().into()), ("gid", about.gid().into())] {
            record(&mut records, name, number.to_string().as_bytes());
        }
        if !target.as_os_str().is_empty() {
            record(&mut records, "linkpath", target.as_os_str().as_bytes());
        }
        for (name, value) in attributes {
            record(&mut records, &format!("SCHILY.xattr.{name}"), value);
        }
        self.out.write_all(&block(b"attributes", b'x', records.len() as u64, about))?;
        self.out.write_all(&records)?;
        self.pad(records.len() as u64)?;
        self.out.write_all(&block(path.as_os_str().as_bytes(), kind, size, about))
    }

    /// Exactly so many bytes of a file, which somebody may write to meanwhile.
    fn contents(&mut self, mut file: File, size: u64) -> IoResult<()> {
        let (mut left, mut buffer) = (size, vec![0; 1 << 16]);
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = match file.read(&mut buffer[..most])? {
                0 => {
                    buffer.fill(0);
                    most
                }
                count => count,
            };
            self.out.write_all(&buffer[..count])?;
            left -= count as u64;
        }
        self.pad(size)
    }

    fn pad(&mut self, size: u64) -> IoResult<()> {
        let over = (size % BLOCK as u64) as usize;
        self.out.write_all(&[0; BLOCK][..(BLOCK - over) % BLOCK])
    }
}

/// The name of the whiteout of `name`.
fn prefixed(name: &OsStr) -> OsString {
    OsString::from_vec([b".wh.", name.as_bytes()].concat())
}

/// A record of an extended header: its own length, which counts its own digits, a name and a value.
fn record(records: &mut Vec<u8>, name: &str, value: &[u8]) {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + rest.to_string().len();
    length = rest + length.to_string().len();
    records.extend(format!("{length} {name}=").into_bytes());
    records.extend(value);
    records.push(b'\n');
}

/// A header; what does not fit is in an extended one before it.
fn block(name: &[u8], kind: u8, size: u64, about: &Metadata) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let name = &name[..name.len().min(NAME_BYTES)];
    block[..name.len()].copy_from_slice(name);
    let mut put = |at: usize, width: usize, number: u64| {
        let most = (1_u64 << (3 * (width - 1))) - 1;
        let digits = format!("{:0width$o}", number.min(most), width = width - 1);
        block[at..at + width - 1].copy_from_slice(digits.as_bytes());
    };
    put(100, 8, u64::from(about.mode() & 0o7777));
    put(108, 8, u64::from(about.uid()));
    put(116, 8, u64::from(about.gid()));
    put(124, 12, size);
    put(136, 12, about.mtime().max(0).unsigned_abs());
    if matches!(kind, b'3' | b'4') {
        put(329, 8, major(about.rdev()));
        put(337, 8, minor(about.rdev()));
    }
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// A file's extended attributes, by their names.
fn attributes(path: &Path) -> IoResult<Vec<(String, Vec<u8>)>> {
    let place = CString::new(path.as_os_str().as_bytes())?;
    let list = grown(|buffer, size| {
        // SAFETY: the name ends with NUL, and the buffer has that size.
        unsafe { libc::llistxattr(place.as_ptr(), buffer.cast(), size) }
    })?;
    let mut found = Vec::new();
    for name in list.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let value = grown(|buffer, size| {
            // SAFETY: the names end with NUL, and the buffer has that size.
            unsafe { libc::lgetxattr(place.as_ptr(), name.as_ptr(), buffer.cast(), size) }
        })?;
        found.push((name.to_string_lossy().into_owned(), value));
    }
    Ok(found)
}

/// What the kernel writes into a buffer as large as it asks for.
fn grown(ask: impl Fn(*mut u8, usize) -> isize) -> IoResult<Vec<u8>> {
    let size = usize::try_from(ask(std::ptr::null_mut(), 0)).map_err(|_| std::io::Error::last_os_error())?;
    let mut buffer = vec![0; size];
    let filled = usize::try_from(ask(buffer.as_mut_ptr(), size)).map_err(|_| std::io::Error::last_os_error())?;
    buffer.truncate(filled);
    Ok(buffer)
}
