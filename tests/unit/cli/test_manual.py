"""The manual pages say what `--help` says, and roff takes words for nothing but words."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from types import ModuleType

import pytest
import typer.main

from dilaton.cli.main import app
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def manual() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "scripts" / "manual.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(manual: ModuleType) -> dict[str, str]:
    found: dict[str, str] = manual.pages()
    return found


def test_every_verb_has_a_page_and_the_page_of_dilaton_names_it(pages: dict[str, str]) -> None:
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    shown = [name for name, verb in verbs.items() if not verb.hidden]
    assert {f"dilaton-{name}.1" for name in shown} < set(pages)
    assert {"dilaton.1", "dilaton-kernel-build.1", "dilaton-validate-link.1"} < set(pages)
    assert all(f".B {name}\n" in pages["dilaton.1"] for name in shown)


def test_a_page_has_what_help_says_of_each_option(pages: dict[str, str]) -> None:
    page = pages["dilaton-run.1"]
    for option in typer.main.get_command(app).commands["run"].params:  # type: ignore[attr-defined]
        assert not option.help or option.help.split("(")[0].replace("-", "\\-")[:40] in page, option.name


def test_words_that_roff_would_take_for_orders_are_escaped(manual: ModuleType) -> None:
    assert manual.text(".SH a\\b -x\n\n'no") == "\\&.SH a\\eb \\-x\n.PP\n\\&'no"
    assert manual.quoted('say "x"') == '"say \\(dqx\\(dq"'


def test_roff_finds_nothing_wrong_with_the_pages(pages: dict[str, str]) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, page in pages.items():
        read = subprocess.run(["groff", "-man", "-ww", "-z"], input=page, capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, ""), name
