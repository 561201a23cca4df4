//! The agent's code in the inits of nodes, which go on as the same program.
//!
//! **Problem.** A fork leaves out what can be read from a file again, so that a new process meets each page of its code as a
//! fault: that was a third of all that the making of a node took. The kernel has a fork copy the entries of such a mapping once a
//! page of it was written to and is no more that of the file (vma_needs_copy in mm/memory.c).
//!
//! **Rule.** So one byte of each mapping is written, as it is, and all pages are made present. From then on a fork has them, and
//! its process is told of all of them at once.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;

use crate::error::{Doing, Result};

extern "C" {
    /// Where this program begins in memory, and where its code ends, by the linker (end(3)).
    static __executable_start: u8;
    static etext: u8;
}

/// Lets processes that are forked from now on have the code from the start.
///
/// # Errors
/// The kernel refuses it.
pub fn share() -> Result<()> {
    let doing = || "share the agent's code".to_owned();
    let [begin, end] = [&raw const __executable_start, &raw const etext];
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").doing(doing)?;
    // What is only read is a mapping of its own, before that of the code.
    for place in [begin as u64, share as fn() -> Result<()> as usize as u64] {
        let mut byte = [0];
        memory.read_exact_at(&mut byte, place).and_then(|()| memory.write_all_at(&byte, place)).doing(doing)?;
    }
    let length = end as usize - begin as usize;
    // SAFETY: it changes nothing that can be read; the range is that of this program, which begins with a page.
    let result = unsafe { libc::madvise(begin.cast_mut().cast(), length, libc::MADV_POPULATE_READ) };
    Errno::result(result).map(drop).doing(doing)
}
