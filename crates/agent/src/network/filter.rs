//! Socket filters: what a program in the kernel says of each packet or message before a socket gets it.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;

use crate::plan::BpfInstruction;

/// Gives a socket a filter, in place of the one that it has.
///
/// # Errors
/// The kernel refuses it.
pub fn attach(socket: &OwnedFd, program: &[BpfInstruction]) -> nix::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|&BpfInstruction(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which is readable for its length, as is what it points to.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    };
    Errno::result(set).map(drop)
}
