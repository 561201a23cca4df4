"""What the prompt completes."""

from __future__ import annotations

from types import SimpleNamespace

from dilaton.cli.prompt import Prompt


def test_nodes_and_what_can_be_done_with_clocks_and_links_are_completed() -> None:
    prompt = object.__new__(Prompt)
    prompt.__dict__["_network"] = SimpleNamespace(nodes=["h1", "h2", "s1"])
    assert prompt.complete_clock("re") == ["release"]
    assert prompt.complete_link("s") == ["s1", "show", "set"]
    assert prompt.completedefault("h") == ["h1", "h2"]
