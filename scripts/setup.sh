# shellcheck shell=bash
# Sourced by `dilaton` and `dev`, which set $root. `set_up run` makes what a run needs (the clock, the agent and the
# Python environment), `set_up server` also what `dilaton serve` needs, `set_up dev` also what the tests and checks need, the
# page among it where there is npm. Where nothing changed it costs two calls of find. What was made is stamped with a
# fingerprint of everything that it was made from, and the stamp is written last: an interrupted set-up is simply done again.
: "${root:?}"

venv=$root/.venv
state=$root/target/setup
agent_target=x86_64-unknown-linux-gnu
clock_library=$root/target/release/libdilaton_clock.so
agent_program=$root/target/$agent_target/release/dilaton-agent
warden_program=$root/target/$agent_target/release/dilaton-warden

# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"
# shellcheck source=scripts/build.sh
. "$root/scripts/build.sh"
# shellcheck source=scripts/environment.sh
. "$root/scripts/environment.sh"
# shellcheck source=scripts/page.sh
. "$root/scripts/page.sh"

# Of the scripts, those that make the thing.
build_inputs=(Cargo.toml Cargo.lock crates scripts/build.sh)
run_inputs=(requirements/run.txt scripts/environment.sh)
server_inputs=(requirements/server.txt)
dev_inputs=(requirements/dev.txt scripts/environment.sh scripts/debian.sh)

build_stamp=$state/build.stamp
run_stamp=$venv/run.stamp
server_stamp=$venv/server.stamp
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
    [[ -e $clock_library && -x $agent_program && -x $warden_program ]] && is_fresh "$build_stamp" "${build_inputs[@]}"
}

is_installed() {
    [[ -x $venv/bin/python ]] && is_fresh "$run_stamp" "${run_inputs[@]}"
}

is_set_up() {
    is_built && is_installed || return 1
    [[ $1 == run ]] && return
    is_fresh "$server_stamp" "${server_inputs[@]}" || return 1
    ! is_page_awaited "$1" || return 1
    [[ $1 == server ]] || is_fresh "$dev_stamp" "${dev_inputs[@]}"
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

# why_not_set_up: what a user is told who may not set up this tree.
why_not_set_up() {
    local python
    python=$(readlink -- "$venv/bin/python") || python=$venv/bin/python
    if is_built && [[ -e $run_stamp && ! -x $venv/bin/python ]]; then
        printf '%s' "$(id -un) may not run $python, with which $root was set up: let its owner put a Python that all may run" \
            " first in PATH, remove $venv and run ./dilaton doctor"
    else
        printf '%s' "$root is not set up for its present sources, and $(id -un) may not write there: let its owner run" \
            " ./dilaton doctor"
    fi
}

# Not where the environment is made: by a change there it would be made anew for everybody.
install_server() {
    say "Installing what the server needs …"
    install_requirements server
}

# set_up run|server|dev
set_up() {
    is_set_up "$1" && return
    [[ $(uname -m) == x86_64 ]] || give_up "this machine is $(uname -m); User-Mode Linux guests need x86_64"
    mkdir -p -- "$state" 2>/dev/null || true
    [[ -w $state && -w $root ]] || give_up "$(why_not_set_up)"
    # A subshell, so that the lock and every change of directory or environment end with it. Not in a condition, where
    # errexit would be off inside.
    (
        trap 'exit 130' INT
        trap 'exit 143' TERM
        flock --nonblock 9 || { say "Another set-up is under way; waiting for it …" && flock 9; }
        install_packages "$1"
        is_built || make_stamped "$build_stamp" build "${build_inputs[@]}"
        is_installed || make_stamped "$run_stamp" install_run "${run_inputs[@]}"
        if [[ $1 != run ]] && ! is_fresh "$server_stamp" "${server_inputs[@]}"; then
            make_stamped "$server_stamp" install_server "${server_inputs[@]}"
        fi
        ! is_page_awaited "$1" || make_page "$1"
        if [[ $1 == dev ]] && ! is_fresh "$dev_stamp" "${dev_inputs[@]}"; then
            make_stamped "$dev_stamp" install_dev "${dev_inputs[@]}"
        fi
    ) 9>"$state/lock"
}
