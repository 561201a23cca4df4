"""`dilaton new`: a first lab, which runs as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

from dilaton.cli.errors import BadInputError, writing
from dilaton.lab.text.syntax import parse_lab_name

TEMPLATE = Path(__file__).with_suffix(".yaml")
SUFFIXES = (".yaml", ".yml")


def write_lab(path: Path) -> None:
    """Writes a lab to `path`, or to `lab.yaml` in it where it does not end as a YAML file does.

    Raises:
        BadInputError: there is one already, it cannot be written, or the lab could not have that name.
    """
    is_file = path.suffix in SUFFIXES
    file = path if is_file else path / "lab.yaml"
    try:
        name = parse_lab_name(path.resolve().stem if is_file else path.resolve().name)
    except ValueError as error:
        raise BadInputError(f"{path}: the lab would have its name: {error}") from error
    with writing(file):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x") as new:
                new.write(TEMPLATE.read_text().replace("NAME", name, 1))
        except FileExistsError as error:
            raise BadInputError(f"{error.filename}: exists already, and is left as it is") from error
    print(f"{file}: written; next: dilaton run {shlex.quote(str(path))}")
