# shellcheck shell=bash
# Tries the wheel on other systems: file trees of other distributions, which an ordinary user enters. Sourced by dev.
# The trees share this machine's kernel and processors; what differs is what a wheel meets: libc, Python, programs.
: "${root:?}"

systems_dir=$root/target/systems
system_packages=python3,python3-venv,bubblewrap,iperf3,iputils-ping,iproute2,ca-certificates
# Suites of Debian and Ubuntu, with the oldest libc first; that of the first is older than a wheel promises.
too_old=bullseye
suites=("$too_old" bookworm noble trixie)
# The last is about what programs in nodes are told of the CPU: libc chooses its functions by that.
system_tests=(tests/functional/course/test_schedule.py tests/functional/course/test_pauses.py
    tests/functional/nodes/test_cpu_shares.py tests/host/clock/test_cpuid.py)

# make_tree SUITE: once; by mmdebstrap(1), as whoever runs this, from the mirrors that it knows. What root mounts in the tree it mounts
# in a namespace of its own, which ends with all that is in it, however this ends. Lists that a mirror no longer keeps up to date
# are taken, as nothing but the tests runs what they bring; they have to be signed all the same.
make_tree() {
    local tree=$systems_dir/$1/tree components=main alone=()
    [[ ! -e $tree.made ]] || return 0
    command -v mmdebstrap >/dev/null || give_up "there is no mmdebstrap: sudo apt-get install mmdebstrap"
    [[ $1 != noble ]] || components=main,universe
    say "Making the file tree of $1 …"
    rm -rf -- "$tree" "$tree.temporary"
    mkdir -p "$tree.temporary"
    [[ $(id -u) != 0 ]] || alone=(unshare --mount --pid --mount-proc --fork --kill-child --)
    # shellcheck disable=SC2016 # the shell of the hook has the tree
    TMPDIR=$tree.temporary "${alone[@]}" mmdebstrap --quiet --variant=minbase --components="$components" --include="$system_packages" \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --customize-hook='sed -n "s/^Valid-Until:/The lists are good until/p" "$1"/var/lib/apt/lists/*Release >&2' \
        "$1" "$tree" || return
    rm -rf -- "$tree.temporary"
    # Places for what is of this machine.
    touch "$tree/etc/resolv.conf" "$tree.made"
}

# in_system SUITE COMMAND...: as an ordinary user, in a namespace of its own; only /home is writable, and lasts.
in_system() {
    local place=$systems_dir/$1 user=()
    shift
    [[ $(id -u) != 0 ]] || user=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --no-new-privs)
    "${user[@]}" bwrap --unshare-user --uid 1000 --gid 1000 --unshare-pid --unshare-ipc --die-with-parent --new-session \
        --ro-bind "$place/tree" / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --bind "$place/home" /home \
        --ro-bind /etc/resolv.conf /etc/resolv.conf \
        --ro-bind /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt \
        --unsetenv XDG_CACHE_HOME --unsetenv XDG_CONFIG_HOME --unsetenv XDG_DATA_HOME --unsetenv XDG_RUNTIME_DIR \
        --chdir /home --setenv HOME /home --setenv PATH /home/venv/bin:/usr/bin:/bin --setenv LANG C.UTF-8 -- "$@"
}

# timed WHAT COMMAND...: says what that took, with the load that it began beside. CPU time is not told: bwrap(1) ends without waiting
# for what it started, so that nobody is told what that used.
timed() {
    local load TIMEFORMAT="$1: %R s"
    read -r load _ </proc/loadavg
    TIMEFORMAT+=", begun beside a load of $load"
    time "${@:2}"
}

# try_tools SUITE WHEEL: uv and pipx, as docs/install.md says: each installs the command, puts the wheel in place of itself, and
# takes it away. The command runs a guest each time, and is gone in the end.
try_tools() {
    local command=/home/.local/bin/dilaton line
    in_system "$1" python3 -m venv tools || return
    in_system "$1" tools/bin/pip install --quiet uv pipx || return
    while read -r line; do
        say "$1: $line"
        # shellcheck disable=SC2086 # the words of a line
        in_system "$1" tools/bin/$line </dev/null || return
        if [[ $line == *uninstall* ]]; then
            ! in_system "$1" test -e "$command" || return
        else
            in_system "$1" "$command" exec -- true </dev/null || return
        fi
    done <<LINES
uv tool install $2
uv tool install --reinstall $2
uv tool uninstall dilaton
pipx install $2
pipx install --force $2
pipx uninstall dilaton
LINES
}

# make_home SUITE FILE...: that of a user who has these and an empty environment for Python.
make_home() {
    local home=$systems_dir/$1/home
    rm -rf -- "$home"
    mkdir -p "$home"
    cp -r -- "${@:2}" "$home"
    [[ $(id -u) != 0 ]] || chown -R 65534:65534 "$home"
    in_system "$1" python3 -m venv venv
}

# try_refusal SUITE WHEEL: where libc is too old pip names the platform and installs nothing, the one of the suite and today's. Of a
# wheel that promised this libc it would not have said so.
try_refusal() {
    local name=${2##*/} older pip said version
    make_tree "$1" && make_home "$1" "$2" || return
    version=$(in_system "$1" getconf GNU_LIBC_VERSION) || return
    older=${name/manylinux_*_x86_64/manylinux_$(tr . _ <<<"${version##* }")_x86_64}
    in_system "$1" ln -s "$name" "$older" || return
    for pip in old new; do
        [[ $pip == old ]] || in_system "$1" pip install --quiet --upgrade pip || return
        ! said=$(in_system "$1" pip install --no-deps "/home/$name" 2>&1) || return
        say "$1: $said"
        [[ $said == *"is not a supported wheel on this platform"* ]] || return
        ! said=$(in_system "$1" pip install --no-deps "/home/$older" 2>&1) || return
        [[ $said != *platform* ]] || return
    done
}

# try_system SUITE WHEEL
try_system() {
    local clone=$systems_dir/$1/clone
    make_tree "$1" || return
    # Without the package: the tests run what is installed.
    rm -rf -- "$clone" && mkdir "$clone" && cp -r -- "$root"/{tests,examples,docs,pyproject.toml} "$clone" || return
    make_home "$1" "$2" "$clone" || return
    timed "$1: pip install" in_system "$1" pip install --quiet "/home/${2##*/}" || return
    timed "$1: the demo" in_system "$1" dilaton demo --out demo || return
    in_system "$1" dilaton doctor || return
    in_system "$1" pip install --quiet pytest pytest-timeout hypothesis || return
    try_tools "$1" "/home/${2##*/}" || return
    in_system "$1" env -C clone python -m pytest --quiet -p no:cacheprovider "${system_tests[@]}"
}

# try_container: a server's image, built and entered by Podman or Docker as docs/server.md says: doctor, its page, and a run.
try_container() {
    local engine run server=/opt/dilaton/bin/dilaton
    engine=$(command -v podman || command -v docker) || give_up "there is no podman: sudo apt-get install podman"
    run=("$engine" run --rm --init --security-opt seccomp=unconfined --security-opt apparmor=unconfined)
    # What lets the container mount a /proc of a jail has a name of its own in each.
    case $engine in *podman) run+=(--security-opt unmask=ALL) ;; *) run+=(--security-opt systempaths=unconfined) ;; esac
    "$engine" build --tag dilaton --file "$root/Containerfile" "$root" || return
    "${run[@]}" dilaton doctor || return
    "${run[@]}" --volume "$root/scripts/try_server.py:/try_server.py:ro" --entrypoint python3 dilaton \
        /try_server.py "$server" serve --port 0
}

# systems [SUITE|container...]: every system, though one fails.
systems() {
    local suite wheel chosen=("$@")
    ((${#chosen[@]})) || chosen=("${suites[@]}")
    for wheel in "$root"/target/wheel/*.whl; do :; done
    [[ -e $wheel ]] || give_up "there is no wheel: ./dev wheel makes one"
    for suite in "${chosen[@]}"; do
        case $suite in
        container) check container try_container ;;
        "$too_old") check "$suite" try_refusal "$suite" "$wheel" ;;
        *) check "$suite" try_system "$suite" "$wheel" ;;
        esac
    done
    # shellcheck disable=SC2154 # check, of dev, sets it
    if ((${#failures[@]})); then
        say "the wheel fails on: ${failures[*]}"
        return 1
    fi
}
