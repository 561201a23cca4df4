# shellcheck shell=bash
# Makes the Python environment. Sourced by setup.sh, which sets what is named here and has say, quietly and give_up.
: "${root:?}" "${venv:?}" "${python_version_min:?}"

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

# use_pip: set $pip to a command that installs into the environment.
use_pip() {
    pip=("$venv/bin/python" -I -m pip)
    if ! "${pip[@]}" --version >/dev/null 2>&1; then
        pip=("$(find_python)" -I -m pip --python "$venv/bin/python")
    fi
}

# install_requirements NAME: the lists name every package with its version, so nothing is left to resolve.
install_requirements() {
    local pip
    use_pip
    quietly "pip-$1" "${pip[@]}" install --disable-pip-version-check --no-input --no-deps \
        --requirement "$root/requirements/$1.txt"
}
