//! The program that the kernel starts for each device that comes or goes, which no guest has.
//!
//! **Problem.** A kernel with CONFIG_UEVENT_HELPER, as Debian's, runs /sbin/hotplug for each event of a device: a hundred while
//! it boots, before it has any files, and more for each node. There is no such program, but the kernel finds that out in a
//! new process with memory of its own, which is a process of the host.
//!
//! **Rule.** Its name, which programs may change too (/proc/sys/kernel/hotplug), is empty from the start: then the kernel starts
//! nothing. No argument of the kernel's sets it, and a sysctl only once it has booted. So it is looked for among the kernel's
//! data, where it is the only array of this length that begins with that name and is zero beyond (lib/kobject_uevent.c). A
//! kernel that has none starts no program.

/// CONFIG_UEVENT_HELPER_PATH.
const NAME: &[u8] = b"/sbin/hotplug";

/// UEVENT_HELPER_PATH_LEN of linux/kobject.h.
const LENGTH: usize = 256;

/// Empties the name. Before the kernel's `main`.
pub fn leave_out() {
    let mut whole = [0; LENGTH];
    whole[..NAME.len()].copy_from_slice(NAME);
    for (start, length) in data() {
        // SAFETY: the segment is mapped, nothing of the kernel runs yet, and what is found is within it.
        unsafe {
            let found = libc::memmem(start, length, whole.as_ptr().cast(), LENGTH).cast::<u8>();
            if !found.is_null() {
                found.write(0);
            }
        }
    }
}

/// The kernel's data in memory, each piece with its length: what of its file may be written to, and is not run.
fn data() -> impl Iterator<Item = (*const libc::c_void, usize)> {
    // SAFETY: the host's kernel tells where the headers of the program are and how many, and they stay there.
    let headers = unsafe {
        let first = libc::getauxval(libc::AT_PHDR) as *const libc::Elf64_Phdr;
        core::slice::from_raw_parts(first, libc::getauxval(libc::AT_PHNUM) as usize)
    };
    // A User-Mode Linux kernel is where its headers say; other programs may be that far from there.
    let own = headers.iter().find(|header| header.p_type == libc::PT_PHDR);
    let moved = own.map_or(0, |own| (headers.as_ptr() as u64).wrapping_sub(own.p_vaddr));
    let is_data = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & (libc::PF_W | libc::PF_X) == libc::PF_W
    };
    let begin = move |header: &libc::Elf64_Phdr| header.p_vaddr.wrapping_add(moved) as *const _;
    headers.iter().filter(is_data).map(move |header| (begin(header), header.p_filesz as usize))
}
