"""`dilaton --server URL save`, `saved` and `resume --at`: runs of a server that are gone on with."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from urllib.parse import quote

from rich.markup import escape
from rich.table import Table

from dilaton.cli.errors import BadInputError, FailedError
from dilaton.cli.machine.image import shown
from dilaton.cli.output import visible
from dilaton.cli.runs.remote import any_at, asking, found_at, tell
from dilaton.cli.terminal import Output
from dilaton.measure import numbers
from dilaton.remote.server import Server


def save_there(url: str, place: str, name: str, max_size: str | None) -> None:
    """Saves a run of a server there, or makes an image of a node of one; arguments as of `save`."""
    run, _, node = place.partition(":")
    if not node and max_size is not None:
        raise BadInputError("--max-size: is of an image; write RUN:NODE for one")
    with asking():
        found = found_at(Server(url), run)
        with shown() as progress:
            if node:
                image = found.save_node(node, name, max_size, progress)
                print(visible(f"{image['name']} {image['digest']}"))
                return
            saved, left_out = found.save(name, progress)
    for said in left_out:
        print(visible(said), file=sys.stderr)
    at = numbers.duration(saved["virtual_s"])
    print(visible(f"{name}: {saved['lab']} as at {at}; dilaton --server {url} up -d {name} goes on from there"))


def repeat_there(url: str, run: str, at: str) -> None:
    """Repeats a run of a server that is over, up to an instant, and looks whether it stands where that was."""
    with asking():
        server = Server(url)
        again = server.repeat(any_at(server, run).identity, at)
        for state in again.states():
            tell(again, state)
            if state == "held":
                break
        else:
            raise FailedError(f"{again.identity}: {again.show()['reason'] or 'it has ended'}")
        same = again.compare()
    print(
        f"{again.identity} is held at {at}, in the state that {run} had: {same['events']} events and "
        f"{same['bytes']:,} bytes that guests wrote are the same\n"
        f"to go on: dilaton --server {url} clock {again.identity} release"
    )


def list_saved_there(url: str) -> None:
    """Prints one's own saved labs of a server."""
    rows = Table(box=None, pad_edge=False)
    for heading in ("name", "lab", "saved at", "size"):
        rows.add_column(heading, overflow="fold")
    with asking():
        found = Server(url).saved()
    for one in found["saved"]:
        at, size = numbers.duration(one["virtual_s"]), f"{one['size_bytes'] / 1e6:,.1f} MB"
        rows.add_row(escape(one["name"]), escape(visible(one["lab"])), at, size)
    Output().print(rows)
    if broken := [visible(f"{one['name']}: {one['wrong']}") for one in found["broken"]]:
        raise FailedError("\n".join(broken))


def show_saved_there(url: str, name: str) -> None:
    """Prints a saved lab of a server as JSON."""
    with asking():
        for one in Server(url).saved()["saved"]:
            if one["name"] == name:
                print(json.dumps(one, indent=2))
                return
    raise BadInputError(f"{name}: no saved lab; dilaton --server {url} saved list shows all")


def remove_saved_there(url: str, names: Sequence[str]) -> None:
    """Removes saved labs of a server."""
    with asking():
        for name in names:
            Server(url).ask("DELETE", f"/saved/{quote(name, safe='')}")
