//! A machine outside in the node's network: this program, executed in the node, joins its standard streams to a device of the
//! node's, behind which that machine seems to be.
//!
//! What passes the streams are IP packets, each after its length; the host's end takes them out of the machine's own tunnel
//! and puts them there (`service/vpn/`). The first that comes out of the node is empty, and says that all is set up there. So nothing is encrypted here, no key is in a guest, and no timer of the tunnel's runs in
//! virtual time. A packet gets into the node at the virtual instant at which it is read here.
//!
//! The other nodes know nothing of that machine. Where the node forwards, what goes on from it therefore has the node's own
//! address, as behind `kind: nat`; where it does not, the machine reaches the node alone, which stays as the lab wants it.
//!
//! The device belongs to this process, so that no death leaves it. The rule does not: a hang-up is seen as the end of the input,
//! after which the rule is taken away.

use std::fs::{read_to_string, File, OpenOptions};
use std::io::{stdin, stdout, ErrorKind, Read, Result as IoResult, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::thread;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::signal::{signal, SigHandler, Signal};

use crate::error::{Doing, Error, Result};
use crate::network::addresses::octets;
use crate::network::interface_header;
use crate::network::masquerade;
use crate::network::netlink::{Request, Socket};

/// The first argument of this program when it does that.
pub const WORD: &str = "tunnel";
/// What devices are called, with a number that is free.
const NAME: &[u8] = b"vpn%d";
/// As WireGuard has it where what is around a packet passes Ethernet, with either version of IP (wg-quick(8)).
const MTU: u32 = 1420;
/// More than any packet has.
const PACKET_BYTES_MAX: usize = 1 << 16;
/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
/// `struct ifreq` of `linux/if.h`, and where its flags are, behind the name.
const IFREQ_BYTES: usize = 40;
const IFREQ_FLAGS: usize = 16;

/// Has the machine of these addresses in the node's network until the input ends.
///
/// # Errors
/// One is no address, or the kernel refuses a device, or what masks the addresses.
pub fn carry(addresses: &[&str]) -> Result<()> {
    let parsed = |text: &&str| text.parse().map_err(|_| Error::new(format!("{text}: no address of IPv4 or IPv6")));
    let addresses = addresses.iter().map(parsed).collect::<Result<Vec<IpAddr>>>()?;
    // SAFETY: nothing of ours runs when a signal comes that is ignored.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }.doing(|| "ignore hang-ups".to_owned())?;
    let (device, name) = device().doing(|| "make a device for packets from outside".to_owned())?;
    configure(&name, &addresses)?;
    let masked = addresses.into_iter().filter(forwards).collect::<Vec<_>>();
    masked.iter().try_for_each(|address| mask(*address, true))?;
    let carried = join(&device).doing(|| format!("carry packets of {name}"));
    masked.iter().try_for_each(|address| mask(*address, false))?;
    carried
}

/// Whether the node forwards packets of the version of IP that an address is of.
fn forwards(address: &IpAddr) -> bool {
    let parameter = if address.is_ipv4() { "ipv4/ip_forward" } else { "ipv6/conf/all/forwarding" };
    read_to_string(format!("/proc/sys/net/{parameter}")).is_ok_and(|text| text.trim() == "1")
}

/// A device for IP packets, and its name.
fn device() -> IoResult<(File, String)> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut request = [0_u8; IFREQ_BYTES];
    request[..NAME.len()].copy_from_slice(NAME);
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    request[IFREQ_FLAGS..IFREQ_FLAGS + 2].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the descriptor is open, and the request is as long as what the kernel reads and writes there.
    Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) })?;
    let name = request[..IFREQ_FLAGS].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok((file, String::from_utf8_lossy(name).into_owned()))
}

/// Sets the device up, with the ways to the machine.
fn configure(name: &str, addresses: &[IpAddr]) -> Result<()> {
    let index = if_nametoindex(name).doing(|| name.to_owned())?;
    let up = libc::IFF_UP as u32;
    let link = Request::new(libc::RTM_NEWLINK, 0)
        .structure(&interface_header(index, up, up))
        .attribute(libc::IFLA_MTU, &MTU.to_ne_bytes());
    let mut messages = vec![(link, format!("set up {name}"))];
    messages.extend(addresses.iter().map(|address| (route(index, address), format!("route to {address}"))));
    Socket::open()?.batch(messages)
}

/// What has packets to an address go to a device.
fn route(index: u32, address: &IpAddr) -> Request {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let octets = octets(*address);
    let mut header = [0; 12]; // struct rtmsg
    header[0] = family as u8;
    header[1] = 8 * octets.len() as u8;
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = libc::RTPROT_STATIC;
    header[6] = libc::RT_SCOPE_LINK;
    header[7] = libc::RTN_UNICAST;
    Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .structure(&header)
        .attribute(libc::RTA_DST, &octets)
        .attribute(libc::RTA_OIF, &index.to_ne_bytes())
}

/// Gives packets of the machine that go on the node's address, or no more.
fn mask(address: IpAddr, on: bool) -> Result<()> {
    let program = if address.is_ipv4() { "iptables-legacy" } else { "ip6tables-legacy" };
    let doing = || format!("{program} (Debian package iptables), which gives what goes on the node's address");
    let (how, source) = (if on { "-A" } else { "-D" }, address.to_string());
    let arguments = ["-w", "-t", "nat", how, "POSTROUTING", "-s", &source, "-j", "MASQUERADE"];
    match Command::new(program).args(arguments).output() {
        Ok(done) if done.status.success() => Ok(()),
        _ if !masquerade::has_tables() => masquerade::mask(address, on),
        Ok(done) => Err(Error::new(String::from_utf8_lossy(&done.stderr).trim().to_owned())).doing(doing),
        Err(error) => Err(error).doing(doing),
    }
}

/// Says that all is set up, and carries packets both ways until the input ends; nobody waits for one that is still to come
/// out of the node then.
fn join(device: &File) -> IoResult<()> {
    let mut outgoing = device.try_clone()?;
    let mut output = File::from(stdout().as_fd().try_clone_to_owned()?);
    output.write_all(&framed(&[]))?;
    thread::spawn(move || -> IoResult<()> {
        let mut packet = vec![0; PACKET_BYTES_MAX];
        loop {
            let length = outgoing.read(&mut packet)?;
            output.write_all(&framed(&packet[..length]))?;
        }
    });
    let mut input = File::from(stdin().as_fd().try_clone_to_owned()?);
    while let Some(packet) = next(&mut input)? {
        // What is no packet the kernel refuses, and it is lost as any other that is damaged.
        match (&mut &*device).write(&packet) {
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
            _ => (),
        }
    }
    Ok(())
}

/// A packet after its length.
fn framed(packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u16;
    [&length.to_be_bytes(), packet].concat()
}

/// The next packet; `None`: the input has ended, be it in the midst of one.
fn next(input: &mut impl Read) -> IoResult<Option<Vec<u8>>> {
    let mut length = [0; 2];
    let read = input.read_exact(&mut length).and_then(|()| {
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        input.read_exact(&mut packet).map(|()| packet)
    });
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_of_the_stream_as_they_were_put_there() {
        let packets = [vec![1; 1420], Vec::new(), vec![2]];
        let mut stream = packets.iter().flat_map(|packet| framed(packet)).collect::<Vec<u8>>();
        stream.extend([0, 9, 3]);
        let mut rest = stream.as_slice();
        for packet in packets {
            assert_eq!(next(&mut rest).unwrap(), Some(packet));
        }
        assert_eq!(next(&mut rest).unwrap(), None, "the last one is not whole");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let refused = carry(&["10.0.0"]).unwrap_err();
        assert!(refused.to_string().contains("10.0.0: no address of IPv4 or IPv6"));
    }
}
