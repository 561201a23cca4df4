"""`dilaton graph` and `dilaton export`: a lab's network as a picture, or for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dilaton.cli.errors import BadInputError, writing
from dilaton.cli.labs.division import divided, words
from dilaton.lab.model import Lab
from dilaton.measure import numbers
from dilaton.plan.model import Plan
from dilaton.run.machines import Division
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides

PICTURES = (".svg", ".png", ".pdf")


def write_graph(
    path: Path, out: Path | None, show: str, overrides: Overrides, machines: int, onto: Sequence[str]
) -> None:
    """Draws the network of a lab.

    Args:
        path: Of the lab.
        out: The picture; None: `<lab>.svg`.
        show: What is written beside links, with commas.
        overrides: What counts instead of what the lab says.
        machines: How many, made of this one, by which nodes are coloured where there are several.
        onto: The hosts by which they are coloured instead.

    Raises:
        BadInputError: there can be no picture of that name, or it cannot show that.
    """
    prepared = prepare(LabText.read(path), overrides)
    lab, plan = prepared.lab, prepared.plan
    out = out or Path(f"{lab.name}.svg")
    if out.suffix == ".dot":
        if onto or machines > 1:
            raise BadInputError(f"{out}: machines are coloured in {', '.join(PICTURES)} alone")
        write_export(path, out, "dot", overrides)
        return
    if out.suffix not in PICTURES:
        raise BadInputError(f"{out}: not a picture; let its name end with {', '.join(PICTURES)} or .dot")
    from dilaton.report.drawing import LABELS, draw

    labels = [word.strip() for word in show.split(",") if word.strip()]
    if unknown := [word for word in labels if word not in LABELS]:
        raise BadInputError(f"--show {unknown[0]}: must be of {', '.join(LABELS)}")
    addresses = {(node.name, each.name): each.addresses for node in plan.nodes for each in node.interfaces}
    found = divided(plan, machines, onto)
    with writing(out):
        draw(lab, out, labels, addresses, {} if found is None else _machines(plan, found))
    print(f"{out}: {_counts(lab)}")
    for line in words(plan, found) if found else ():
        print(line)


def _machines(plan: Plan, division: Division) -> dict[str, str]:
    """The machine of each node."""
    homes = {guest.name: division.names[home] for guest, home in zip(plan.guests, division.homes, strict=True)}
    in_order = sorted(plan.nodes, key=lambda node: division.names.index(homes[node.guest]))
    return {node.name: homes[node.guest] for node in in_order}


def write_export(path: Path, out: Path, name: str | None, overrides: Overrides) -> None:
    """Writes the network of a lab in another format, and says what that leaves out.

    Raises:
        BadInputError: there is no such format, or the file cannot be written.
    """
    from dilaton.lab.exporters import FORMATS
    from dilaton.plan.export import export

    prepared = prepare(LabText.read(path), overrides)
    if name is None:
        name = next((name for name, known in FORMATS.items() if out.name.endswith(known.suffix)), None)
    if name not in FORMATS:
        known = ", ".join(f"{name} ({known.suffix})" for name, known in FORMATS.items())
        raise BadInputError(f"{out if name is None else name}: not a known format; use one of {known}")
    text, lacks = export(prepared.lab, prepared.plan, name)
    with writing(out):
        out.write_text(text)
    print(f"{out}: {_counts(prepared.lab)}")
    if lacks:
        print(f"left out, since {name} has no place for it: {', '.join(lacks)}")


def _counts(lab: Lab) -> str:
    return f"{numbers.counted(len(lab.nodes), 'node')}, {numbers.counted(len(lab.links), 'link')}"
