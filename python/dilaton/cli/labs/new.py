"""`dilaton new`: a first lab, which runs as it is, or the lab that a file of another program becomes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dilaton.cli.errors import BadInputError, refusing, writing
from dilaton.cli.output import visible
from dilaton.lab.errors import LabError
from dilaton.lab.imported.file import Imported, imported
from dilaton.lab.settings import apply_settings, parse_setting
from dilaton.lab.text.syntax import parse_lab_name
from dilaton.service.request import lab_file

TEMPLATE = Path(__file__).with_suffix(".yaml")
TOPOLOGY = "topology"
SUFFIXES = (".yaml", ".yml")


def write_lab(path: Path, source: Path | None, settings: Sequence[str] = ()) -> None:
    """Writes a lab to `path`, or to `lab.yaml` in it where it does not end as a YAML file does.

    Args:
        path: The lab's.
        source: A file of another program, or a directory of Kathará's; None: the lab is one to begin with.
        settings: Fields of `topology:` by which `source` is read, as `topology.topo=NAME`.

    Raises:
        BadInputError: there is one already, it cannot be written, the lab could not have that name, or `source` cannot
            be read.
    """
    is_file = path.suffix in SUFFIXES
    file = path if is_file else path / "lab.yaml"
    try:
        name = parse_lab_name(path.resolve().stem if is_file else path.resolve().name)
    except ValueError as error:
        raise BadInputError(f"{path}: the lab would have its name: {error}") from error
    if source is not None:
        made = _made_of(source, name, settings)
    elif settings:
        raise BadInputError(f"--set {settings[0]}: says how a file is read; name one by --from")
    else:
        made = Imported("lab", TEMPLATE.read_text().replace("NAME", name, 1))
    with writing(file):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x") as new:
                new.write(made.text)
        except FileExistsError as error:
            raise BadInputError(f"{error.filename}: exists already, and is left as it is") from error
    for what in made.left_out:
        print(f"left out: {visible(what)}")
    print(f"{file}: written; next: dilaton run {shlex.quote(str(path))}")


def _made_of(source: Path, name: str, settings: Sequence[str]) -> Imported:
    lab: dict[str, Any] = {TOPOLOGY: {}}
    with refusing(ValueError, LabError):
        for setting in settings:
            if not setting.startswith(f"{TOPOLOGY}."):
                raise BadInputError(f"--set {setting}: only a field of {TOPOLOGY}: says how a file is read")
        apply_settings(lab, map(parse_setting, settings))
        return imported(lab_file(source), lab[TOPOLOGY], name)
