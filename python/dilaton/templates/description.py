"""What a template says of itself: `template.yaml` beside its lab.

A parameter is a name for fields of the lab. So the lab of a template is a lab like any other, which runs as it is: what
it says is the default, and the type of a parameter is that of its fields, by whose rules a value is checked.

```yaml
title: A bottleneck between many hosts
parameters:
  rate: {fields: links.0.rate, about: of the bottleneck}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from dilaton.lab.settings import steps_of
from dilaton.lab.text import syntax
from dilaton.lab.text.document import read_document
from dilaton.lab.text.part import Part, Text, made
from dilaton.lab.text.replacing import read_field, replace_field

FILE = "template.yaml"


class ChoiceError(ValueError):
    """There is no such parameter or field; `name` is the one that was chosen, `why` what is wrong with it."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"--set {name}: {why}")
        self.name, self.why = name, why


class Parameter(Part):
    """What may be chosen."""

    fields: Annotated[tuple[Text, ...], BeforeValidator(syntax.parse_names), Field(min_length=1)]
    """Of the lab, as `links.0.rate`; all of them get the value."""
    about: Text = ""


class Description(Part):
    """A template, as people see it."""

    title: Text = ""
    parameters: dict[Annotated[str, BeforeValidator(syntax.parse_variable)], Parameter] = Field(default_factory=dict)


def read_description(text: str, name: str) -> Description:
    """Reads one.

    Raises:
        LabError: It is no YAML.
        ValueError: It is no description; the text names the file, and the first field that cannot be so.
    """
    data = read_document(text, name).data
    if not isinstance(data, dict):
        raise ValueError(f"{name}: must be a mapping, such as title: A bottleneck")
    return made(Description, data, name)


def defaults(description: Description, lab: str) -> dict[str, str]:
    """What each parameter is unless something else is chosen.

    Raises:
        ValueError: A field that one names is not in the lab.
    """
    found = {}
    for name, parameter in description.parameters.items():
        try:
            found[name], *_ = [read_field(lab, steps_of(field)) for field in parameter.fields]
        except ValueError as error:
            raise ValueError(f"{FILE}: parameters.{name}: {error}") from error
    return found


def filled(description: Description, lab: str, chosen: Mapping[str, str]) -> str:
    """The lab's text with what was chosen: parameters by name, and other fields by their paths.

    Raises:
        ChoiceError: There is no such parameter or field.
    """
    for name, value in chosen.items():
        known = description.parameters.get(name)
        for field in known.fields if known else (name,):
            try:
                lab = replace_field(lab, steps_of(field), value)
            except ValueError as error:
                names = ", ".join(description.parameters) or "none"
                raise ChoiceError(name, f"{error}; its parameters: {names}") from error
    return lab
