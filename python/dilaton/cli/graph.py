"""`dilaton graph` and `dilaton export`: a lab's network as a picture, or for other programs."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.check import Overrides, read_lab
from dilaton.cli.errors import BadInputError, writing
from dilaton.lab.model import Lab
from dilaton.measure import numbers

PICTURES = (".svg", ".png", ".pdf")


def write_graph(path: Path, out: Path | None) -> None:
    """Draws the network of a lab.

    Raises:
        BadInputError: there can be no picture of that name.
    """
    lab, _ = read_lab(path, Overrides())
    out = out or Path(f"{lab.name}.svg")
    if out.suffix == ".dot":
        write_export(path, out, "dot")
        return
    if out.suffix not in PICTURES:
        raise BadInputError(f"{out}: not a picture; let its name end with {', '.join(PICTURES)} or .dot")
    from dilaton.report.drawing import draw

    with writing(out):
        draw(lab, out)
    print(f"{out}: {_counts(lab)}")


def write_export(path: Path, out: Path, name: str | None) -> None:
    """Writes the network of a lab in another format, and says what that leaves out.

    Raises:
        BadInputError: there is no such format, or the file cannot be written.
    """
    from dilaton.lab.exporters import FORMATS

    lab, _ = read_lab(path, Overrides())
    if name is None:
        name = next((name for name, known in FORMATS.items() if out.name.endswith(known.suffix)), None)
    if name not in FORMATS:
        known = ", ".join(f"{name} ({known.suffix})" for name, known in FORMATS.items())
        raise BadInputError(f"{out if name is None else name}: not a known format; use one of {known}")
    text, lacks = FORMATS[name].write(lab)
    with writing(out):
        out.write_text(text)
    print(f"{out}: {_counts(lab)}")
    if lacks:
        print(f"left out, since {name} has no place for it: {', '.join(lacks)}")


def _counts(lab: Lab) -> str:
    return f"{numbers.counted(len(lab.nodes), 'node')}, {numbers.counted(len(lab.links), 'link')}"
