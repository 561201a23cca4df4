# shellcheck shell=bash
# Builds the page of `dilaton serve` from web/, into target/page. Sourced by setup.sh. A server without a page is a server
# nevertheless, so what is missing for one, or does not work, is said, and keeps nothing from going on.
: "${root:?}" "${state:?}"

page=$root/target/page
node_version_min=18
page_inputs=(web/package-lock.json web/index.html web/vite.config.ts web/svelte.config.js web/src web/public scripts/page.sh)
tools_inputs=(web/package-lock.json)

page_stamp=$state/page.stamp
tools_stamp=$root/web/node_modules/tools.stamp

# has_npm: npm, with a node that is new enough.
has_npm() {
    local version
    command -v npm >/dev/null && version=$(node --version 2>/dev/null) || return 1
    version=${version#v}
    ((${version%%.*} >= node_version_min))
}

# is_page_due server|dev: is there something to build, and what it takes? For developers the tools of the checks, too.
is_page_due() {
    [[ -d $root/web ]] && has_npm || return 1
    { [[ -e $page/index.html ]] && is_fresh "$page_stamp" "${page_inputs[@]}"; } || return 0
    [[ $1 == dev ]] && ! is_fresh "$tools_stamp" "${tools_inputs[@]}"
}

# is_page_awaited run|server|dev: is there something to build before all goes on? A first page is built beside its server.
is_page_awaited() {
    [[ $1 == dev || ($1 == server && -e $page/index.html) ]] && is_page_due "$1"
}

# make_page_beside: begins to build the first page, where npm is there, and goes on meanwhile. Not one in place of another,
# whose parts would go while browsers ask for them.
make_page_beside() {
    [[ ! -e $page/index.html ]] && is_page_due server && mkdir -p -- "$state" 2>/dev/null && [[ -w $root ]] || return 0
    # Who reads what the server prints is not kept waiting for its end by what builds.
    make_page server >/dev/null &
}

# make_page server|dev: one at a time.
make_page() {
    (
        flock 8
        is_page_due "$1" || exit 0
        begin=$SECONDS
        say "Building the page: what builds it is fetched by npm, once (its log is $state/page.log) …"
        if build_page "$1" >"$state/page.log" 2>&1 </dev/null; then
            say "The page is built, after $((SECONDS - begin)) s."
        else
            tail -n 5 "$state/page.log" >&2
            say "The page could not be built ($state/page.log); the API is there nevertheless."
        fi
    ) 8>"$state/page.lock"
}

# build_page server|dev: not stopped by errexit where it is a condition, so each step says whether it goes on. Nothing of
# what is installed runs a script of its own.
build_page() {
    local flags=(--ignore-scripts --no-audit --no-fund)
    [[ $1 == dev ]] || flags+=(--omit=dev)
    cd "$root/web" || return
    if ! is_fresh "$tools_stamp" "${tools_inputs[@]}"; then
        npm ci "${flags[@]}" || return
        [[ $1 != dev ]] || fingerprint "${tools_inputs[@]}" >"$tools_stamp" || return
    fi
    fingerprint "${page_inputs[@]}" >"$state/page.pending" || return
    # It is there whole or not at all.
    npm run --silent build -- --outDir "$page.new" || return
    rm -rf -- "$page" || return
    mv -- "$page.new" "$page" || return
    mv -- "$state/page.pending" "$page_stamp"
}

# say_page: what whoever serves is told where no page can be.
say_page() {
    [[ -e $page/index.html ]] || has_npm || say "There is no page: it is built by npm, with Node.js $node_version_min or newer (Debian:" \
        "apt-get install npm). The API is there nevertheless."
}
