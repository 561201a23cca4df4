"""What the documents tell readers to write: their labs are good ones, and their commands are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from ruamel.yaml import YAML

from dilaton.cli.main import app
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.schema.labs import lab_schema

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?:^|\s)(?:\./)?dilaton (\w[^#|;\n]*)", re.MULTILINE)
REDIRECTION = re.compile(r"\s[<>]")

SCHEMA = jsonschema.Draft202012Validator(lab_schema())

# What is YAML there are files of a server's administrators (`tests/unit/server/test_document.py`).
NO_LABS = {"server"}

# The documents leave out of some labs what does not matter there.
LEFT_OUT = {"name": "name: x\n", "nodes": "nodes: {a: {}, b: {}}\n"}


def labs() -> list[Any]:
    """The labs of all pages."""
    pages = [page for page in PAGES if page.stem not in NO_LABS]
    texts = [(page, text) for page in pages for kind, text in BLOCK.findall(page.read_text()) if kind == "yaml"]
    return [pytest.param(text, id=f"{page.stem}-{number}") for number, (page, text) in enumerate(texts)]


def commands() -> set[str]:
    """What follows `dilaton` in the pages, without the marks of what may be left out."""
    said = set()
    for page in PAGES:
        text = page.read_text()
        said |= {block for kind, block in BLOCK.findall(text) if kind in ("sh", "console")}
        said |= set(INLINE.findall(BLOCK.sub("", text)))
    found = (command for text in said for command in COMMAND.findall(text.replace("\\\n", "")))
    return {re.sub(r"[][]", "", REDIRECTION.split(command)[0]).strip() for command in found}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # topohub leaves its file open
@pytest.mark.parametrize("text", labs())
def test_every_lab_is_a_good_one(tmp_path: Path, text: str) -> None:
    if "topohub:" in text:
        pytest.importorskip("topohub")
    (tmp_path / "vm.img").write_bytes(bytes(1 << 20))
    for name in ("site.conf", "app.conf", "www/index.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    generated = re.search("^topology:", text, re.MULTILINE)
    missing = [field for field in LEFT_OUT if not re.search(f"^{field}:", text, re.MULTILINE)]
    head = "".join(LEFT_OUT[field] for field in missing if not (generated and field == "nodes"))
    compile_plan(loads(head + text, str(tmp_path / "lab.yaml"), core_ghz=2.7))
    SCHEMA.validate(YAML(typ="safe").load(head + text))


@pytest.mark.parametrize("text", sorted(commands()))
def test_every_command_is_understood(text: str) -> None:
    words = shlex.split(text)
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands
        command = command.commands[words.pop(0)]
    if words:  # else the text only names the verb
        command.make_context("dilaton", words)
