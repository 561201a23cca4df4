"""Reads a lab file into a `Lab`, and tells every mistake in it at once, by line and column."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dilaton.lab.checks.whole import check_lab
from dilaton.lab.errors import Finding, LabError, Path, Problem, path_of
from dilaton.lab.model import Lab
from dilaton.lab.settings import Setting, apply_settings
from dilaton.lab.text.document import Document, read_document
from dilaton.lab.text.syntax import did_you_mean, lab_name_of
from dilaton.lab.text.wording import KEY, message
from dilaton.lab.text.yaml_nodes import CHARACTERS_MAX
from dilaton.lab.topology import ENDINGS, KATHARA_FILE

_SIZE_MAX = 4 * CHARACTERS_MAX
"""Bytes of a lab file: a character has at most four."""

NETWORKS = tuple(ending for ending in ENDINGS if ending != ".json")
"""How names of files end that describe networks; JSON may be a lab too, as YAML knows it."""

PROBLEMS_MAX = 200
"""Mistakes of a lab that are told one by one. More help nobody, and to find words for each takes its time."""


def load(path: str | os.PathLike[str], settings: Sequence[Setting] = (), core_ghz: float | None = None) -> Lab:
    """Reads a lab file; `settings` replace what it says, and `core_ghz` is what CPU speeds in GHz are measured by.

    Raises:
        LabError: the file cannot be read or has mistakes; it names them all.
    """
    return loads(read(path), os.fspath(path), settings, core_ghz)


def read(path: str | os.PathLike[str]) -> str:
    """The text of a lab file; of a network that is described for another program, that of a lab which has it.

    Raises:
        LabError: it cannot be read, or is no text.
    """
    file = os.fspath(path)
    if file.endswith(NETWORKS) and os.path.isfile(file):
        return _of_network(FilePath(file).resolve())
    try:
        with open(file, "rb") as stream:
            raw = stream.read(_SIZE_MAX + 1)
    except IsADirectoryError as error:
        inside = FilePath(file) / "lab.yaml"
        hint = f"; did you mean {inside}?" if inside.is_file() else "; a lab is a YAML file"
        raise LabError([Problem(file, 0, 0, "", f"is a directory{hint}")]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = _labs_beside(FilePath(file)) if isinstance(error, FileNotFoundError) else ""
        raise LabError([Problem(file, 0, 0, "", f"cannot be read: {reason}{hint}")]) from error
    if len(raw) > _SIZE_MAX:
        raise LabError([Problem(file, 0, 0, "", f"is larger than {_SIZE_MAX} bytes; a lab is a small YAML file")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        what = f"not UTF-8 text: byte 0x{raw[error.start]:02x}; save the file as UTF-8"
        raise LabError([Problem(file, line, column, "", what)]) from error


def _of_network(path: FilePath) -> str:
    # The network of Kathara's users is a directory, with a file in it of always the same name.
    named = path.parent if path.name == KATHARA_FILE else path
    return f"name: {lab_name_of(named.name)}\ntopology: {{file: {json.dumps(path.name)}}}\n"


def _labs_beside(missing: FilePath) -> str:
    """The end of the message about a lab that is not there, `; did you mean X?`, if one of a name close to it is."""
    try:
        beside = sorted(missing.parent.iterdir())
    except OSError:
        return ""  # the directory is not there either, or is nobody's business
    labs = [path for path in beside if path.suffix in (".yaml", ".yml") or (path / "lab.yaml").is_file()]
    named = [path for path in labs if path.stem == missing.name]
    return f"; did you mean {named[0]}?" if named else did_you_mean(str(missing), map(str, labs))


def loads(text: str, name: str, settings: Sequence[Setting] = (), core_ghz: float | None = None) -> Lab:
    """Reads a lab from text; `settings` replace what it says.

    `name` stands for the file in messages, and files that the lab names are beside it. `core_ghz` is the speed of a
    core of the host in GHz-equivalents; None: it is not known, and CPU speeds in GHz are mistakes.

    Raises:
        LabError: the text has mistakes; it names them all.
    """
    document = read_document(text, name)
    document.settings = apply_settings(document.data, settings)
    problems = list(document.problems)
    context = {"directory": os.path.dirname(name) or ".", "core_ghz": core_ghz}
    lab: Lab | None = None
    try:
        lab = _validate(document.data, context)
    except ValidationError as error:
        details = [detail for detail in error.errors() if not _follows(detail, document)]
        problems += [_problem(detail, document) for detail in details[: PROBLEMS_MAX + 1]]
        lab = _without_mistakes(document.data, details, context)
    replaced = {path for path, _ in settings}
    reported = {_part(problem.field) for problem in problems}
    findings = itertools.islice(check_lab(lab, replaced), PROBLEMS_MAX + 1) if lab else ()
    found = [_found(finding, lab, document) for finding in findings] if lab else []
    # What is left of a part with a mistake may look wrong for that reason only.
    problems += [problem for problem in found if _part(problem.field) not in reported]
    if problems or lab is None:
        raise _refusal(_first(problems), document)
    return lab


def _refusal(problems: list[Problem], document: Document) -> LabError:
    """Tells mistakes, without places in a text that nobody wrote; of a file for another program, that it is one."""
    if document.file.endswith(NETWORKS):
        return LabError([replace(problem, line=0, column=0) for problem in problems])
    from dilaton.lab.imported import kinds

    kind = kinds.of_data(document.data)
    if kind == kinds.LAB:
        return LabError(problems)
    known = f"a network for {kind}, not a lab; dilaton new LAB --from {document.file} writes one"
    return LabError([Problem(document.file, 0, 0, "", known)])


def _first(problems: list[Problem]) -> list[Problem]:
    """Those problems that are told one by one, and that there are more, where there are."""
    told = sorted(set(problems))
    if len(told) <= PROBLEMS_MAX:
        return told
    last = told[PROBLEMS_MAX - 1]
    more = "there are more mistakes than these; they are told when these are mended"
    return [*told[:PROBLEMS_MAX], Problem(last.file, last.line, last.column + 1, "", more)]


def locate(error: LabError, text: str, name: str, settings: Sequence[Setting] = ()) -> LabError:
    """What planning found wrong with a lab, at its place in the lab's text, or in the settings that replaced that.

    `name` stands for the lab's file in messages.
    """
    document = read_document(text, name)
    document.settings = apply_settings(document.data, settings)
    return _refusal([document.problem(path_of(problem.field), problem.message) for problem in error.problems], document)


def _follows(detail: ErrorDetails, document: Document) -> bool:
    """Whether an error only follows from another one that is told already."""
    path = detail["loc"]
    is_empty = any(path[:length] in document.empty for length in range(1, len(path) + 1))
    return is_empty or detail["type"] == "default_factory_not_called"


def _validate(data: Any, context: dict[str, Any]) -> Lab:
    """Makes a lab of data; the context has the directory of the lab's file, at which paths in it start."""
    return Lab.model_validate(data, by_name=False, context=context)


def _found(finding: Finding, lab: Lab, document: Document) -> Problem:
    """A finding, at its place in the file: links of the topology come first in a lab, and are not in its file."""
    match finding.path:
        case ("links", int(number), *rest) if lab.topology:
            written = number - len(lab.topology.links)
            if written < 0:
                ends = " -- ".join(end.node for end in lab.links[number].endpoints)
                return document.problem(("topology",), f"link {ends}: {finding.message}")
            return document.problem(("links", written, *rest), finding.message, finding.at_key)
        case ("nodes", str(name), *_) if lab.topology and name not in (document.data.get("nodes") or {}):
            return document.problem(("topology",), f"node {name}: {finding.message}")
    return document.problem(finding.path, finding.message, finding.at_key)


def _part(field: str) -> str:
    """The element of a list, or the top-level field, that a field belongs to: `links[3]` for `links[3].rate`."""
    return field.split(".", maxsplit=1)[0]


def _without_mistakes(data: Any, details: list[ErrorDetails], context: dict[str, Any]) -> Lab | None:
    """The lab without the fields in error, so that the rest of it can be checked; None if nothing would be left."""
    bad_names = any(detail["loc"][:1] == ("nodes",) and detail["loc"][-1] in (KEY, "nodes") for detail in details)
    # Without its topology a lab lacks most nodes.
    bad_names |= any(detail["loc"][:1] == ("topology",) for detail in details)
    if bad_names or not isinstance(data, dict):
        return None
    rest = {"name": "unnamed"} | copy.deepcopy(data)
    while details:
        removed = [_remove(rest, detail["loc"]) for detail in details]
        if not any(removed):
            return None
        if "run" not in rest:
            rest.pop("expect", None)
        try:
            return _validate(rest, context)
        except ValidationError as error:
            details = error.errors()
    return None


def _remove(data: Any, path: Path) -> bool:
    """Removes the innermost mapping entry that is on the way to `path`, since list positions must stay as they are.

    Returns:
        Whether there was one.
    """
    parent: dict[str, Any] | None = None
    entry = ""
    for step in path:
        if isinstance(data, dict) and step in data:
            parent, entry = data, str(step)
            data = data[step]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            break
    if parent is not None:
        del parent[entry]
    return parent is not None


def _problem(detail: ErrorDetails, document: Document) -> Problem:
    path = detail["loc"]
    if path[-1:] == (KEY,):
        return document.problem(path[:-1], message(detail), at_key=True)
    return document.problem(path, message(detail), at_key=detail["type"] == "extra_forbidden")
