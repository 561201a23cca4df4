"""How packets find their way, as users write it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from dilaton.lab.text import syntax
from dilaton.lab.text.part import Part

POLICIES = ("shortest-path", "ecmp", "ospf", "bgp", "none")


def _parse_policy(value: object) -> object:
    return syntax.parse_choice(value, "a routing policy", POLICIES)


def _parse_hash(value: object) -> object:
    return syntax.parse_choice(value, "a hash of flows", ("l3", "l4"))


def _parse_daemon(value: object) -> object:
    return syntax.parse_choice(value, "a routing daemon", ("bird", "frr"))


class Routing(Part):
    """The routing of a lab: its policy, and what carries it out."""

    policy: Annotated[Literal["shortest-path", "ecmp", "ospf", "bgp", "none"], BeforeValidator(_parse_policy)] = (
        "shortest-path"
    )
    hash: Annotated[Literal["l3", "l4"], BeforeValidator(_parse_hash)] = "l4"
    """What packets on the same path have in common with `ecmp`: the addresses (l3), and protocol and ports too (l4)."""

    daemon: Annotated[Literal["bird", "frr"], BeforeValidator(_parse_daemon)] = "bird"
    """What runs on the routers with `ospf` and `bgp`."""

    @model_validator(mode="before")
    @classmethod
    def _from_policy(cls, data: Any) -> Any:
        return {"policy": data} if isinstance(data, str) else data

    @property
    def has_daemon(self) -> bool:
        """Whether routers find their routes themselves, while the lab runs."""
        return self.policy in ("ospf", "bgp")
