//! Kernel modules, loaded in process: dependencies and aliases come from the files that depmod wrote.
//!
//! The agent also serves the kernel as its `modprobe` (see [`serve_kernel`]): the guest's root is read-only, so there
//! is no `/lib/modules` where the machine's own one would look.
//!
//! A kernel of our own has no modules and calls nobody: what it has is built in, and its `modules.builtin` says so. The
//! host tells by `DILATON_MODULES` where that is, a word of the kernel's command line, which the kernel puts into the
//! environment of process 1. Whom it calls as its `modprobe` has an environment without it, and reads the command line.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{read, read_to_string, write, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sys::utsname::uname;

use crate::error::{Doing, Error, Result};

/// Where the modules of a guest's kernel are looked for, in this order, unless `VARIABLE` names the place.
const ROOTS: [&str; 2] = ["/usr/lib/uml/modules", "/lib/modules"];

const VARIABLE: &str = "DILATON_MODULES";

/// What kernels call when they want a module.
const USUAL: &str = "/sbin/modprobe";

/// The module files of the running kernel.
pub struct Modules {
    directory: PathBuf,
    dependencies: String,
    loaded: HashSet<String>,
}

impl Modules {
    /// Finds the modules of the running kernel.
    ///
    /// # Errors
    /// There are none.
    pub fn find() -> Result<Self> {
        let directory = directory()?;
        let list = directory.join("modules.dep");
        let dependencies = read_to_string(&list).doing(|| format!("read {}", list.display()))?;
        Ok(Self { directory, dependencies, loaded: HashSet::new() })
    }

    /// Loads the module or alias `name` and what it depends on; nothing happens if it is there already. Of `one|other` it is the
    /// other one where the first cannot be had.
    ///
    /// # Errors
    /// There is no such module, or the kernel refuses it.
    pub fn load(&mut self, name: &str) -> Result<()> {
        if let Some((one, other)) = name.split_once('|') {
            return self.load(one).or_else(|_| self.load(other));
        }
        let name = name.replace('-', "_");
        if let Some(files) = files_of(&self.dependencies, &name) {
            // The list names the direct dependency first, and what that one needs after it.
            return files.iter().rev().try_for_each(|file| self.load_file(file));
        }
        if self.names_in("modules.builtin").any(|line| stem(&line) == name) || self.tells_of(&name) {
            return Ok(());
        }
        match self.names_in("modules.alias").find_map(|line| alias_target(&line, &name)) {
            Some(module) => self.load(&module),
            None => Err(Error::new(format!("module {name}: not among those in {}", self.directory.display()))),
        }
    }

    fn load_file(&mut self, file: &str) -> Result<()> {
        if !self.loaded.insert(file.to_owned()) {
            return Ok(());
        }
        let path = self.directory.join(file);
        let module = File::open(&path).doing(|| format!("module {}", path.display()))?;
        let parameters = CString::default();
        // SAFETY: the descriptor is open and the parameters are a C string, both until the call returns.
        let result = unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), parameters.as_ptr(), 0) };
        match Errno::result(result) {
            Ok(_) | Err(Errno::EEXIST) => Ok(()),
            Err(cause) => Err(cause).doing(|| format!("load module {}", path.display())),
        }
    }

    /// Whether the kernel describes what is built in by that name. What can be no module has its name only there, as IPv6
    /// does since Linux 7.
    fn tells_of(&self, name: &str) -> bool {
        describes(&read(self.directory.join("modules.builtin.modinfo")).unwrap_or_default(), name)
    }

    fn names_in(&self, file: &str) -> impl Iterator<Item = String> {
        let text = read_to_string(self.directory.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
    }
}

/// The directory that holds the modules of the running kernel.
///
/// # Errors
/// There is none.
pub fn directory() -> Result<PathBuf> {
    let release = uname().doing(|| "ask for the kernel's release".to_owned())?.release().to_os_string();
    let there = |root: &str| Some(Path::new(root).join(&release)).filter(|directory| directory.is_dir());
    if let Ok(root) = std::env::var(VARIABLE) {
        return there(&root).ok_or_else(|| Error::new(format!("no modules of kernel {release:?} in {root}")));
    }
    // The kernel wants a module for each node that it makes, so what is not needed on most machines comes last.
    let told = || there(&value_in(&read_to_string("/proc/cmdline").ok()?, VARIABLE)?);
    let roots = || ROOTS.iter().find_map(|root| there(root));
    roots()
        .or_else(told)
        .ok_or_else(|| Error::new(format!("no modules of kernel {release:?} in {}", ROOTS.join(" or "))))
}

/// Makes the kernel call this program when it wants a module by itself, if it can load any.
///
/// It does so under the usual name, where this program is put over the machine's own: in nodes, whose roots are other
/// mounts, that name is the machine's own, and programs that call it as the kernel would (iptables-legacy) find it.
///
/// # Errors
/// /proc is not mounted.
pub fn serve_kernel() -> Result<()> {
    if Path::new("/proc/self").exists() && !Path::new("/proc/modules").exists() {
        return Ok(());
    }
    let program = std::env::current_exe().doing(|| "find the agent's own program".to_owned())?;
    let usual = mount(Some(&program), USUAL, None::<&str>, MsFlags::MS_BIND, None::<&str>);
    let name = usual.map_or(program.as_path(), |()| Path::new(USUAL));
    write("/proc/sys/kernel/modprobe", name.as_os_str().as_encoded_bytes())
        .doing(|| "write /proc/sys/kernel/modprobe".to_owned())
}

/// What the words of a kernel's command line give a variable.
fn value_in(command_line: &str, variable: &str) -> Option<String> {
    command_line.split_whitespace().find_map(|word| Some(word.strip_prefix(variable)?.strip_prefix('=')?.to_owned()))
}

/// The module that the kernel wants, if these arguments are those of its call (`modprobe -q -- NAME`).
pub fn wanted_by_kernel(arguments: &[String]) -> Option<&str> {
    match arguments {
        [_, quiet, end, name] if quiet == "-q" && end == "--" => Some(name),
        _ => None,
    }
}

/// The files that module `name` consists of in the text of `modules.dep`, its own first.
fn files_of(dependencies: &str, name: &str) -> Option<Vec<String>> {
    dependencies.lines().find_map(|line| {
        let (file, needs) = line.split_once(':')?;
        (stem(file) == name).then(|| std::iter::once(file).chain(needs.split_whitespace()).map(str::to_owned).collect())
    })
}

/// Whether some of `descriptions`, texts like `ipv6.license=GPL` that end with NUL, are of `name`.
fn describes(descriptions: &[u8], name: &str) -> bool {
    let of_name = |text: &[u8]| text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"."));
    descriptions.split(|&byte| byte == 0).any(of_name)
}

/// The module that a line of `modules.alias` gives for exactly `name`; patterns are for devices, which guests lack.
fn alias_target(line: &str, name: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (_, alias, module) = (words.next()?, words.next()?, words.next()?);
    (alias.replace('-', "_") == name).then(|| module.to_owned())
}

/// The name of the module in a file, as the kernel spells it.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_modules_is_found_on_the_command_line_by_its_whole_name() {
        let line = "mem=64M DILATON_MODULES_TOO=/no DILATON_MODULES=/tmp/dilaton/kernel/modules root=98:0\n";
        assert_eq!(value_in(line, VARIABLE).as_deref(), Some("/tmp/dilaton/kernel/modules"));
        assert_eq!(value_in("mem=64M", VARIABLE), None);
    }

    #[test]
    fn a_module_comes_with_the_files_that_it_needs() {
        let list = "kernel/a/first.ko:\nkernel/b/second-one.ko: kernel/c/third.ko kernel/a/first.ko\n";
        let files = files_of(list, "second_one").unwrap();
        assert_eq!(files, ["kernel/b/second-one.ko", "kernel/c/third.ko", "kernel/a/first.ko"]);
        assert_eq!(files_of(list, "fourth"), None);
    }

    #[test]
    fn of_two_modules_the_other_is_loaded_where_the_first_is_missing() {
        let directory = std::env::temp_dir().join(format!("modules-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        write(directory.join("modules.builtin"), "kernel/net/sched/act_ct.ko\n").unwrap();
        let mut modules = Modules { directory: directory.clone(), dependencies: String::new(), loaded: HashSet::new() };
        modules.load("iptable_nat|act_ct").unwrap();
        modules.load("act_ct|iptable_nat").unwrap();
        let neither = modules.load("iptable_nat|iptable_raw").unwrap_err().to_string();
        std::fs::remove_dir_all(directory).unwrap();
        assert!(neither.starts_with("module iptable_raw: not among those"), "{neither}");
    }

    #[test]
    fn what_is_built_in_is_known_by_what_the_kernel_tells_of_it() {
        let descriptions = b"tcp_cubic.license=GPL\0ipv6.parm=disable:Disable ipv4.too\0";
        assert!(describes(descriptions, "ipv6"));
        assert!(!describes(descriptions, "ipv"));
        assert!(!describes(descriptions, "ipv4"));
        assert!(!describes(b"", "ipv6"));
    }

    #[test]
    fn an_alias_leads_to_its_module_whatever_its_dashes() {
        assert_eq!(alias_target("alias rtnl-link-veth veth", "rtnl_link_veth").unwrap(), "veth");
        assert_eq!(alias_target("alias fs-overlay overlay", "veth"), None);
    }

    #[test]
    fn the_kernels_call_for_a_module_is_recognised() {
        let call = ["modprobe", "-q", "--", "tcp_bbr"].map(str::to_owned);
        assert_eq!(wanted_by_kernel(&call), Some("tcp_bbr"));
        assert_eq!(wanted_by_kernel(&call[..1]), None);
    }
}
