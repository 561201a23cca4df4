# shellcheck shell=bash
# Sourced by `dilaton` and `dev`, which set $root. `set_up run` makes what a run needs (the clock, the agent and the
# Python environment), `set_up dev` also what the tests and checks need. Where nothing changed it costs two calls of
# find. What was made is stamped with a fingerprint of everything that it was made from, and the stamp is written
# last: an interrupted set-up is simply done again.
: "${root:?}"

venv=$root/.venv
state=$root/target/setup
agent_target=x86_64-unknown-linux-gnu
clock_library=$root/target/release/libdilaton_clock.so
agent_program=$root/target/$agent_target/release/dilaton-agent

# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

build_inputs=(Cargo.toml Cargo.lock crates scripts)
run_inputs=(requirements/run.txt scripts)
dev_inputs=(requirements/dev.txt scripts)

build_stamp=$state/build.stamp
run_stamp=$venv/run.stamp
dev_stamp=$venv/dev.stamp

say() {
    printf '%s\n' "$*" >&2
}

# Exit status 3: the host lacks something.
give_up() {
    say "dilaton: $*"
    exit 3
}

# quietly NAME COMMAND...: keep the output in a log, and show its end where the command fails.
quietly() {
    local log=$state/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    tail -n 40 "$log" >&2
    give_up "setting up failed; the whole log is $log"
}

# fingerprint INPUT...: a hash of the names and contents of these files and folders of the tree.
fingerprint() {
    (cd "$root" && find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum
}

# is_fresh STAMP INPUT...: is what the stamp stands for made from these inputs as they are now?
# Contents are read only where a file is newer than the stamp.
is_fresh() {
    local stamp=$1 changed
    shift
    [[ -e $stamp ]] || return 1
    changed=$(cd "$root" && find "$@" -newer "$stamp" -print -quit 2>/dev/null) || return 1
    [[ -n $changed ]] || return 0
    [[ $(fingerprint "$@") == "$(<"$stamp")" ]] || return 1
    touch -- "$stamp" 2>/dev/null || true
}

is_built() {
    [[ -e $clock_library && -x $agent_program ]] && is_fresh "$build_stamp" "${build_inputs[@]}"
}

is_installed() {
    [[ -x $venv/bin/python ]] && is_fresh "$run_stamp" "${run_inputs[@]}"
}

is_set_up() {
    is_built && is_installed && { [[ $1 == run ]] || is_fresh "$dev_stamp" "${dev_inputs[@]}"; }
}

# make_stamped STAMP COMMAND INPUT...: the fingerprint is taken before the work starts, so that a source that is
# edited meanwhile makes the result stale.
make_stamped() {
    local stamp=$1 command=$2 pending=$state/pending.stamp
    shift 2
    rm -f -- "$stamp"
    fingerprint "$@" >"$pending"
    "$command"
    mv -- "$pending" "$stamp"
}

build() {
    if [[ -e $agent_program ]]; then
        say "Building the clock and the agent again, since their sources have changed …"
    else
        say "Building the clock and the agent (about a minute, once) …"
    fi
    # These would move the results or change how they are built.
    unset CARGO_TARGET_DIR CARGO_BUILD_TARGET CARGO_BUILD_TARGET_DIR CARGO_ENCODED_RUSTFLAGS RUSTFLAGS
    use_cargo || give_up "there is no cargo $cargo_version_min or newer, even after installing it"
    cd "$root" || exit
    quietly build-clock cargo build --release --package dilaton-clock
    # Static: the agent runs before any node has a file tree with libraries in it.
    quietly build-agent env RUSTFLAGS='-C target-feature=+crt-static' \
        cargo build --release --bin dilaton-agent --target "$agent_target"
}

install_run() {
    local python
    python=$(find_python) || give_up "there is no Python $python_version_min or newer, even after installing it"
    say "Installing the Python environment …"
    rm -rf -- "$venv"
    if has_ensurepip "$python"; then
        quietly venv "$python" -I -m venv "$venv"
    else
        quietly venv "$python" -I -m venv --without-pip "$venv"
    fi
    install_requirements run
    # Relative, so that the tree may be moved.
    local site
    for site in "$venv"/lib/python3.*/site-packages; do
        printf '../../../../python\n' >"$site/dilaton.pth"
    done
}

install_dev() {
    say "Installing the development tools …"
    install_requirements dev
}

# install_requirements NAME: the lists name every package with its version, so nothing is left to resolve.
install_requirements() {
    local pip=("$venv/bin/python" -I -m pip)
    if ! "${pip[@]}" --version >/dev/null 2>&1; then
        pip=("$(find_python)" -I -m pip --python "$venv/bin/python")
    fi
    quietly "pip-$1" "${pip[@]}" install --disable-pip-version-check --no-input --no-deps \
        --requirement "$root/requirements/$1.txt"
}

# set_up run|dev
set_up() {
    is_set_up "$1" && return
    [[ $(uname -m) == x86_64 ]] || give_up "this machine is $(uname -m); User-Mode Linux guests need x86_64"
    mkdir -p -- "$state" 2>/dev/null || true
    [[ -w $state && -w $root ]] ||
        give_up "$root is not set up for its present sources, and $(id -un) may not write there: let its owner run ./dilaton doctor"
    # A subshell, so that the lock and every change of directory or environment end with it. Not in a condition, where
    # errexit would be off inside.
    (
        trap 'exit 130' INT
        trap 'exit 143' TERM
        flock --nonblock 9 || { say "Another set-up is under way; waiting for it …" && flock 9; }
        install_packages "$1"
        is_built || make_stamped "$build_stamp" build "${build_inputs[@]}"
        is_installed || make_stamped "$run_stamp" install_run "${run_inputs[@]}"
        if [[ $1 == dev ]] && ! is_fresh "$dev_stamp" "${dev_inputs[@]}"; then
            make_stamped "$dev_stamp" install_dev "${dev_inputs[@]}"
        fi
    ) 9>"$state/lock"
}
