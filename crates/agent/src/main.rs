//! The agent: process 1 of a guest. It builds the nodes and links of the plan, runs its schedule at exact virtual
//! instants, and tells the host what happens (see `PROTOCOL.md`).
//!
//! One thread, no runtime: whatever the agent waits for is a file descriptor. The same program is the init of every
//! node (`node/init.rs`), the guest kernel's `modprobe` (`guest/modules.rs`), a capture that somebody follows
//! (`measure/following.rs`), what packs what a node has written (`node/changes.rs`), what joins a connection from outside to
//! a port (`node/port.rs`) and a machine outside to a node's network (`network/tunnel.rs`), and what waits for a router's
//! routes (`network/converged.rs`).
//!
//! It is built static, since the guest's root is whatever machine the run happens on, and the flag is given for this
//! crate alone, since another member of the workspace is a shared library:
//!
//! ```sh
//! cargo rustc -p agent --release --target x86_64-unknown-linux-gnu -- -C target-feature=+crt-static
//! ```

mod build;
mod channel;
mod clock;
mod error;
mod guest;
mod measure;
mod network;
mod node;
mod peers;
mod plan;
mod priority;
mod run;
mod schedule;
mod streams;

use std::time::Duration;

use nix::sys::utsname::uname;

use crate::channel::protocol::{FromAgent, FromHost, Outcome, PROTOCOL};
use crate::channel::Channel;
use crate::clock::{set_date_ns, wait_for_host};
use crate::error::{Doing, Error, Result};
use crate::guest::modules::Modules;
use crate::measure::following;
use crate::network::{converged, masquerade, tunnel};
use crate::node::{changes, port};
use crate::run::handover::{self, Handover};
use crate::run::Run;
use crate::streams::Streams;

/// The serial line that is the channel.
const TTY: &str = "/dev/ttyS0";
/// Virtual time after building in which carriers and neighbours settle.
const SETTLE: Duration = Duration::from_secs(1);
/// The least uptime at which programs start. An ovs-vswitchd that starts in the first ten seconds finds no CPU, and then has no
/// thread that handles new flows.
const UPTIME_MIN: Duration = Duration::from_secs(11);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(module) = guest::modules::wanted_by_kernel(&arguments) {
        let loaded = Modules::find().and_then(|mut modules| modules.load(module));
        std::process::exit(i32::from(loaded.is_err()));
    }
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        _ if std::process::id() == 1 => None,
        [_, following::WORD, wanted] => Some(following::follow(wanted)),
        [_, converged::WORD, seconds, networks] => Some(converged::wait(seconds, networks)),
        [_, masquerade::WORD, interface] => Some(masquerade::hide(interface)),
        [_, port::WORD, number] => Some(port::join(number)),
        [_, tunnel::WORD, addresses @ ..] => Some(tunnel::carry(addresses)),
        [_, changes::WORD] => Some(changes::write()),
        [_, changes::WORD_ALL] => Some(changes::write_all()),
        [_, changes::WORD_VOLUME, name] => Some(changes::write_volume(name)),
        [_, changes::WORD_FLUSH] => {
            nix::unistd::sync();
            Some(Ok(()))
        }
        _ => None,
    };
    if let Some(done) = done {
        let Err(error) = done else { return };
        eprintln!("{error}");
        std::process::exit(1);
    }
    if std::process::id() != 1 {
        eprintln!("dilaton-agent {} runs only as process 1 of a Dilaton guest", env!("CARGO_PKG_VERSION"));
        std::process::exit(2);
    }
    std::panic::set_hook(Box::new(|panic| die(&panic.to_string())));
    let Err(error) = live();
    die(&error.to_string())
}

/// Tells the host why the agent cannot go on, and powers off.
fn die(reason: &str) -> ! {
    // A channel that cannot be opened leaves nobody to tell; the host sees the guest end.
    let _ = Channel::open(TTY).and_then(|mut channel| channel.send(&FromAgent::Fatal { reason }));
    guest::power_off()
}

/// Does what the host says until it says halt.
fn live() -> Result<std::convert::Infallible> {
    guest::prepare()?;
    let mut channel = Channel::open(TTY)?;
    let mut streams = Streams::open()?;
    let system = uname().doing(|| "ask for the kernel's release".to_owned())?;
    let kernel = system.release().to_string_lossy();
    wait_for_host(true);
    channel.send(&FromAgent::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION"), kernel: &kernel })?;
    let (mut built, mut before) = (None, None);
    loop {
        let message = channel.receive()?;
        // A guest that powers off needs no virtual time, and the others do not wait for it any more.
        if !matches!(message, FromHost::Halt {}) {
            wait_for_host(false);
        }
        match (message, &built) {
            (FromHost::Build { run_dir, guest, goes_on }, None) => {
                let guest = build::build(&mut channel, &run_dir, &guest)?;
                before = goes_on.then(|| handover::take_up(&guest)).transpose()?;
                built = Some(guest);
                let uptime = Duration::from_nanos(clock::now_ns().unsigned_abs());
                std::thread::sleep(SETTLE.max(UPTIME_MIN.saturating_sub(uptime)));
                wait_for_host(true);
                channel.send(&FromAgent::Ready {})?;
            }
            (FromHost::Arm { lead_ns, date_ns, awaits_program }, Some(guest)) => {
                let lead_own_ns = clock::face().own_ns(lead_ns.unsigned_abs()) as i64;
                set_date_ns(date_ns - lead_ns.signum() * lead_own_ns)?;
                let zero_ns = clock::now_ns() + lead_ns;
                let from_ns = before.as_ref().map(|before: &Handover| before.t_ns);
                guest.sampler.iter().try_for_each(|sampler| sampler.begin(zero_ns, date_ns, from_ns))?;
                Run::new(guest, &mut channel, &mut streams, zero_ns, awaits_program, before.take())?.execute()?;
            }
            (FromHost::Stop { reason }, _) => {
                wait_for_host(true);
                channel.send(&FromAgent::Finished { t_ns: 0, outcome: Outcome::Stopped, reason: &reason })?;
            }
            // The run that it is about has just ended.
            (FromHost::WhoComputes {}, _) => wait_for_host(true),
            (FromHost::UpdateLink { file } | FromHost::UpdateFaults { file }, _) => {
                wait_for_host(true);
                channel.send(&FromAgent::Refused { file: &file, reason: "the run is over" })?;
            }
            (FromHost::Halt {}, _) => guest::power_off(),
            (FromHost::Build { .. }, Some(_)) => return Err(Error::new("the host sent build twice")),
            (FromHost::Arm { .. }, None) => return Err(Error::new("the host sent arm before build")),
        }
    }
}
