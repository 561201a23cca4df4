"""`dilaton graph` and `dilaton export`: a lab's network as a picture, or for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

from dilaton.cli.check import Overrides, read_lab
from dilaton.cli.errors import BadInputError
from dilaton.lab.model import Lab

PICTURES = (".svg", ".png", ".pdf")


def write_graph(path: Path, out: Path | None) -> int:
    """Draws the network of a lab; returns the exit status."""
    try:
        lab, _ = read_lab(path, Overrides())
        out = out or Path(f"{lab.name}.svg")
        if out.suffix == ".dot":
            return write_export(path, out, "dot")
        if out.suffix not in PICTURES:
            raise BadInputError(f"{out}: not a picture; let its name end with {', '.join(PICTURES)} or .dot")
        from dilaton.report.drawing import draw

        draw(lab, out)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{out}: cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{out}: {_counts(lab)}")
    return 0


def write_export(path: Path, out: Path, name: str | None) -> int:
    """Writes the network of a lab in another format, and says what that leaves out; returns the exit status."""
    from dilaton.lab.exporters import FORMATS

    try:
        lab, _ = read_lab(path, Overrides())
        if name is None:
            name = next((name for name, known in FORMATS.items() if out.name.endswith(known.suffix)), None)
        if name not in FORMATS:
            known = ", ".join(f"{name} ({known.suffix})" for name, known in FORMATS.items())
            raise BadInputError(f"{out if name is None else name}: not a known format; use one of {known}")
        text, lacks = FORMATS[name].write(lab)
        out.write_text(text)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{out}: cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print(f"{out}: {_counts(lab)}")
    if lacks:
        print(f"left out, since {name} has no place for it: {', '.join(lacks)}")
    return 0


def _counts(lab: Lab) -> str:
    return f"{len(lab.nodes)} nodes, {len(lab.links)} links"
