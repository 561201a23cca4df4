# shellcheck shell=bash
# Builds the clock, the agent, the warden and the relay. Sourced by setup.sh, which sets what is named here and has say, quietly and give_up.
: "${root:?}" "${agent_target:?}" "${agent_program:?}" "${cargo_version_min:?}"

build() {
    if [[ -e $agent_program ]]; then
        say "Building the clock, the agent and the warden again, since their sources have changed …"
    else
        say "Building the clock, the agent and the warden (about a minute, once) …"
    fi
    # These would move the results or change how they are built.
    unset CARGO_TARGET_DIR CARGO_BUILD_TARGET CARGO_BUILD_TARGET_DIR CARGO_ENCODED_RUSTFLAGS RUSTFLAGS
    use_cargo || give_up "there is no cargo $cargo_version_min or newer, even after installing it"
    cd "$root" || exit
    quietly build-clock cargo build --release --package dilaton-clock
    # Static: the agent runs before any node has a file tree with libraries in it, and the warden starts with every guest.
    quietly build-agent env RUSTFLAGS='-C target-feature=+crt-static' \
        cargo build --release --bin dilaton-agent --bin dilaton-warden --bin dilaton-relay \
        --target "$agent_target"
}
