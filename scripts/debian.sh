# shellcheck shell=bash
# Finds Rust and Python, and installs the Debian packages that are missing. Sourced by setup.sh, which sets $state.
: "${state:?}"

cargo_version_min=1.78
python_version_min=3.11
os_release=/etc/os-release

# version_at_least VERSION MINIMUM, both MAJOR.MINOR…
version_at_least() {
    [[ $(printf '%s\n' "$2" "$1" | sort --version-sort | head -n 1) == "$2" ]]
}

# home_directory: $HOME, or the user's home where it is unset.
home_directory() {
    printf '%s' "${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
}

# use_cargo: put a new enough cargo first in PATH, or fail. Versioned Debian packages live in /usr/lib/rust-VERSION.
use_cargo() {
    local directory version home
    home=$(home_directory)
    for directory in '' "$home/.cargo/bin" /usr/bin /usr/lib/rust-*/bin; do
        version=$(PATH=${directory:+$directory:}$PATH cargo --version 2>/dev/null) || continue
        [[ $version =~ ^cargo\ ([0-9]+\.[0-9]+) ]] || continue
        version_at_least "${BASH_REMATCH[1]}" "$cargo_version_min" || continue
        PATH=${directory:+$directory:}$PATH
        # An account without a home still has to keep the crates somewhere.
        if [[ -z ${CARGO_HOME:-} && ! -w $home/.cargo && ! -w $home ]]; then
            export CARGO_HOME=$state/cargo
        fi
        return 0
    done
    return 1
}

# find_python: print the path of a new enough interpreter, the default one first, or fail. The version is part of
# the path where possible, so that an upgrade of the system does not put another Python below the environment.
find_python() {
    local candidate print_interpreter='
import os, sys
if sys.version_info < tuple(map(int, sys.argv[1].split("."))):
    sys.exit(1)
print(os.path.realpath(sys._base_executable))'
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 \
        "$(home_directory)"/.pyenv/versions/*/bin/python3; do
        "$candidate" -I -c "$print_interpreter" "$python_version_min" 2>/dev/null && return
    done
    return 1
}

has_ensurepip() {
    "$1" -I -c 'import ensurepip, venv' 2>/dev/null
}

# has_pip PYTHON: a pip that can install into another environment (22.3 or newer).
has_pip() {
    "$1" -I -m pip --python "$1" --version >/dev/null 2>&1
}

has_static_libc() {
    [[ $(cc -print-file-name=libc.a 2>/dev/null) == /* ]]
}

# cargo_package: the Debian package with a new enough cargo. Debian 12 has it as cargo-web, Ubuntu under its version.
cargo_package() {
    local name version
    for name in cargo cargo-web $(apt-cache pkgnames cargo-1. 2>/dev/null | grep -E '^cargo-[0-9.]+$' | sort -rV); do
        version=$(apt-cache policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: //p')
        if [[ $version == [0-9]* ]] && version_at_least "$version" "$cargo_version_min"; then
            printf '%s\n' "$name"
            return
        fi
    done
    # The package lists are not there yet.
    if grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release; then printf 'cargo-web\n'; else printf 'cargo\n'; fi
}

# missing_for_setup: packages without which nothing can be built.
missing_for_setup() {
    local python
    use_cargo || cargo_package
    # cargo fetches the crates that it builds from.
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || printf 'ca-certificates\n'
    has_static_libc || printf '%s\n' gcc libc6-dev
    if python=$(find_python); then
        has_ensurepip "$python" || has_pip "$python" || printf 'python3-venv\n'
    else
        printf '%s\n' python3 python3-venv
    fi
}

# is_ubuntu: or something made from it (os-release(5)).
is_ubuntu() (
    ID='' ID_LIKE=''
    # shellcheck source=/dev/null
    . "$os_release" 2>/dev/null
    [[ " $ID $ID_LIKE " == *" ubuntu "* ]]
)

# missing_for run|dev: packages that are used later.
missing_for() {
    local pair
    # Ubuntu does not have it, and nothing could be set up if apt-get were asked for it.
    is_ubuntu || command -v linux.uml >/dev/null || printf 'user-mode-linux\n'
    for pair in bwrap:bubblewrap iperf3:iperf3 ping:iputils-ping ip:iproute2 modprobe:kmod \
        mke2fs:e2fsprogs; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || printf '%s\n' "${pair#*:}"
    done
    # Filters of captures.
    [[ $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p) == *libpcap.so.0.8* ]] || printf 'libpcap0.8\n'
    if [[ $1 == dev ]]; then
        for pair in shellcheck:shellcheck tshark:tshark fio:fio dbench:dbench; do
            command -v "${pair%%:*}" >/dev/null || printf '%s\n' "${pair#*:}"
        done
    fi
}

# missing_programs: what the tests run inside guests: network daemons, servers, languages, debuggers; what images take; and
# what builds the page and what shows it.
missing_programs() {
    local pair
    for pair in bird:bird2 ovs-vswitchd:openvswitch-switch ovs-testcontroller:openvswitch-testcontroller \
        osken-manager:python3-os-ken mn:mininet brctl:bridge-utils iptables-legacy:iptables nginx:nginx-light curl:curl aria2c:aria2 \
        mariadbd:mariadb-server-core mariadb:mariadb-client-core redis-server:redis-server etcd:etcd-server \
        node:nodejs java:default-jre-headless go:golang-go gdb:gdb strace:strace \
        npm:npm chromium:chromium skopeo:skopeo sqfstar:squashfs-tools sqfs2tar:squashfs-tools-ng mmdebstrap:mmdebstrap busybox:busybox-static \
        wg:wireguard-tools wireguard-go:wireguard-go; do
        PATH=$PATH:/usr/sbin:/sbin:/usr/local/go/bin command -v "${pair%%:*}" >/dev/null || printf '%s\n' "${pair#*:}"
    done
    [[ -x /usr/lib/frr/zebra ]] || printf 'frr\n'
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || printf 'postgresql\n'
}

# install_programs: as packages, since nodes see this machine's files and daemons have users and libraries of their own;
# but not to run here. Their services are masked before they come, so that they start neither now nor at the next boot,
# and where services are started without systemd, a policy forbids it meanwhile (invoke-rc.d(8)).
install_programs() {
    local missing service status=0 policy=/usr/sbin/policy-rc.d has_policy
    mapfile -t missing < <(missing_programs)
    ((${#missing[@]})) || return 0
    if ! command -v apt-get >/dev/null || ! can_administrate; then
        say "These Debian packages are missing, and with them the tests that run them in guests: ${missing[*]}"
        return
    fi
    say "Installing Debian packages, without starting their services: ${missing[*]} …"
    for service in bird frr nginx openvswitch-switch openvswitch-testcontroller redis-server etcd postgresql; do
        [[ " ${missing[*]} " != *" $service"* ]] || as_administrator ln -sf /dev/null "/etc/systemd/system/$service.service"
    done
    has_policy=$([[ -e $policy ]] && echo yes || echo no)
    [[ $has_policy == yes ]] || printf '#!/bin/sh\nexit 101\n' | as_administrator install -m 755 /dev/stdin "$policy"
    # In a shell of its own, which may give up: the policy goes in any case.
    (quietly programs apt_install "${missing[@]}") || status=$?
    [[ $has_policy == yes ]] || as_administrator rm -f "$policy"
    ((status == 0)) || exit "$status"
}

# as_administrator COMMAND...: as root, by sudo that asks for nothing, or by sudo that can ask on a terminal.
as_administrator() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

can_administrate() {
    [[ $(id -u) == 0 ]] || sudo -n true 2>/dev/null || { command -v sudo >/dev/null && [[ -t 0 && -t 2 ]]; }
}

apt_get() {
    as_administrator env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# apt_install PACKAGE...: never at the price of removing what the user has.
apt_install() {
    apt_get update || true
    apt_get install --yes --no-install-recommends --no-remove "$@"
}

# install_packages run|dev: install what is missing, or say which command does. Without what only a run uses, setting
# up goes on: `dilaton run` and `dilaton doctor` say what they lack.
install_packages() {
    local needed used missing sudo=''
    if [[ $1 == dev ]]; then install_programs; fi
    mapfile -t needed < <(missing_for_setup)
    mapfile -t used < <(missing_for "$1")
    missing=("${needed[@]}" "${used[@]}")
    ((${#missing[@]})) || return 0
    if command -v apt-get >/dev/null && can_administrate; then
        say "Installing Debian packages: ${missing[*]} …"
        quietly packages apt_install "${missing[@]}"
        return
    fi
    [[ $(id -u) == 0 ]] || sudo='sudo '
    say "These Debian packages are missing: ${missing[*]}. Let an administrator run:
    ${sudo}apt-get update && ${sudo}apt-get install ${missing[*]}"
    ((${#needed[@]} == 0)) || give_up "nothing can be built without ${needed[*]}"
    say "Until then ./dilaton can read and check labs, but not run them."
}
