"""`dilaton --server URL template` and `image`: what a server keeps for labs."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.markup import escape
from rich.table import Table

from dilaton.cli.errors import BadInputError, FailedError, refusing, writing
from dilaton.cli.output import visible
from dilaton.cli.runs.remote import asking
from dilaton.cli.terminal import Output
from dilaton.lab.settings import parse_setting
from dilaton.remote.asking import ServerError
from dilaton.remote.server import Server
from dilaton.run.files.directory import LAB_FILE
from dilaton.service.request import LabText, RunRequest
from dilaton.templates.description import FILE

LOOK_HOST_S = 0.5
"""How often it is asked how far an image is."""


def list_templates_there(url: str) -> None:
    """Prints the templates of a server that one may see."""
    rows = _table("template", "folder", "what it is", "parameters")
    with asking():
        for one in sorted(_templates(Server(url)), key=lambda one: (one["name"], one["folder"])):
            parameters = " ".join(str(parameter["name"]) for parameter in one["parameters"])
            words = [str(one[field]) for field in ("name", "folder", "title")]
            rows.add_row(*(escape(visible(word)) for word in [*words, parameters]))
    Output().print(rows)


def show_template_there(url: str, name: str) -> None:
    """Prints a template of a server as JSON, with its lab."""
    with asking():
        server = Server(url)
        print(json.dumps(server.ask("GET", f"/templates/{_template(server, name)}"), indent=2))


def save_template_there(url: str, lab: Path, name: str) -> None:
    """Saves a lab as one's own template of a server, in place of one of that name."""
    text = LabText.read(lab)
    beside = lab / FILE
    description = beside.read_text() if lab.is_dir() and beside.is_file() else ""
    asked = {"text": text.text, "description": description}
    with asking(RunRequest(lab=text)):
        server = Server(url)
        try:
            made = server.ask("POST", "/templates", {"name": name, **asked})
        except ServerError as error:
            if error.status != 409:
                raise
            home = server.ask("GET", "/session")["home"]
            known = next(one for one in _templates(server) if (one["name"], one["folder"]) == (name, home))
            made = server.ask("PUT", f"/templates/{known['template']}", asked)
    print(f"{name} {made['template']}")


def new_of_template_there(url: str, name: str, path: Path, settings: Sequence[str]) -> None:
    """Begins a lab with a template of a server: there, and as a file here."""
    if path.exists():
        raise BadInputError(f"{path}: exists already, and is left as it is")
    with refusing(ValueError):
        chosen = dict(parse_setting(setting) for setting in settings)
    with asking():
        server = Server(url)
        asked = {"name": path.absolute().name, "chosen": chosen}
        made = server.ask("POST", f"/templates/{_template(server, name)}/labs", asked)
    with writing(path):
        path.mkdir(parents=True)
        (path / LAB_FILE).write_text(made["text"])
    print(f"{path}: written; next: dilaton --server {url} run {shlex.quote(str(path))}")


def remove_templates_there(url: str, names: Sequence[str]) -> None:
    """Removes templates of a server."""
    with asking():
        server = Server(url)
        for name in names:
            server.ask("DELETE", f"/templates/{_template(server, name)}")


def list_images_there(url: str) -> None:
    """Prints the images that labs of a server may name."""
    rows = _table("image", "digest", "bytes", "runs")
    with asking():
        found = Server(url).ask("GET", "/images")
    for one in found["images"]:
        digits = str(one["digest"]).partition(":")[2][:12]
        rows.add_row(escape(one["name"]), digits, str(one["size_bytes"]), escape(visible(" ".join(one["argv"]))))
    Output().print(rows)
    if broken := [visible(str(one["wrong"])) for one in found["broken"]]:
        raise FailedError("\n".join(broken))


def inspect_image_there(url: str, name: str) -> None:
    """Prints an image of a server as JSON."""
    with asking():
        print(json.dumps(Server(url).ask("GET", f"/images/{quote(name)}"), indent=2))


def pull_image_there(url: str, name: str) -> None:
    """Has a server bring an image from its registry, and waits for that."""
    with asking():
        server = Server(url)
        pull = server.ask("POST", "/images", {"name": name})
        try:
            while pull["state"] in ("waiting", "going"):
                time.sleep(LOOK_HOST_S)
                pull = server.ask("GET", f"/pulls/{pull['pull']}")
        except KeyboardInterrupt:
            server.ask("DELETE", f"/pulls/{pull['pull']}")
            raise
    if pull["state"] != "done":
        raise FailedError(f"{name}: {pull['state']}: {visible(str(pull['reason']))}")
    print(pull["image"])


def remove_images_there(url: str, names: Sequence[str]) -> None:
    """Takes names out of a server's store of images."""
    with asking():
        for name in names:
            Server(url).ask("DELETE", f"/images/{quote(name)}")


def _table(*headings: str) -> Table:
    rows = Table(box=None, pad_edge=False)
    for heading in headings:
        rows.add_column(heading, overflow="fold")
    return rows


def _templates(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := server.ask("GET", f"/templates?skip_to={found[-1]['template'] if found else ''}"):
        found += page
    return found


def _template(server: Server, name: str) -> str:
    """The identity of a template, by it or by a name that one template has.

    Raises:
        BadInputError: none has it, or more than one.
    """
    known = [one for one in _templates(server) if name in (one["template"], one["name"])]
    if len(known) != 1:
        found = ", ".join(f"{one['template']} in {one['folder']}" for one in known) or "none"
        raise BadInputError(f"{name}: names no single template: {found}; see dilaton --server URL template list")
    return str(known[0]["template"])
