"""How a server is set up: what `dilaton serve` was told, or its file says.

A server for oneself takes no file and listens on loopback. One for others is reached by its `url`, which is said and
never guessed: by it requests name their host, pages their origin, and links are made. So no header of a proxy decides
what this server takes for its own name. Beyond loopback everything is TLS, the server's own or that of a proxy.
"""

from __future__ import annotations

import os
import re
import ssl
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from dilaton.lab.errors import LabError, Problem
from dilaton.server.access.single_sign_on import Provider, is_safe
from dilaton.server.database.tidying import Keep
from dilaton.server.runs.user_ids import UserIds
from dilaton.server.written import Written, read_written
from dilaton.service.vpn.gateway import places

PORT = 8642

LOOPBACK = ("127.0.0.1", "::1", "localhost")

BODY_BYTES_MAX = 4 << 20
"""Of a request; the largest is a lab, whose text has at most a million characters."""

MESSAGE_BYTES_MAX = 1 << 18
"""Of a WebSocket's message; more than anybody pastes at once."""

SCHEME = "postgresql://"

BACK = "/api/v1/session/provider/back"
"""Where a provider sends browsers back to, below the server's URL."""


Log = Literal["text", "json"]


class SettingsError(ValueError):
    """A server cannot be set up so; names the field and what would do."""


def default_directory() -> Path:
    """Where a server keeps its data, unless told: a directory of the user's own, as the XDG specification has it."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "dilaton" / "server"


@dataclass(frozen=True)
class Vpn:
    """Where WireGuard of people's machines is answered.

    Attributes:
        places: Addresses and UDP ports to listen at, one for each tunnel.
        name: By which machines find this one; empty: as the server's URL has it.
    """

    places: tuple[tuple[str, int], ...]
    name: str = ""


@dataclass(frozen=True)
class Settings:
    """How a server is set up.

    Attributes:
        directory: Where its data are: the database, and a directory for each run.
        host, port: Where it listens.
        url: Under which people reach it; empty: by its host and port.
        at_once: How many runs go on at once; more wait in the queue.
        certificate, key: Files of its TLS; none: it speaks plain HTTP.
        proxies: Addresses whose word counts for who is calling.
        postgresql: The URL of its database; empty: a file of SQLite among its data.
        roles: A file of roles and groups; none: there are those that are built in.
        keep: What is kept, and for how long.
        log: How its log is written: as text, or as lines of JSON with each request.
        machines: Hosts that a run may be spread over, as `--onto` names them; none: machines are made of this one.
        registries: From which images may be pulled; of one without TLS with http:// before it.
        provider: By whom people log in, beside what the server keeps of them itself; none: nobody.
        proxy_domain: All names below it are this server's, for pages of nodes; empty: there are none but on loopback.
        run_as: The user ids of runs, one for each person; None: runs have the server's.
        vpn: Where WireGuard of people's machines is answered; None: nowhere.
    """

    directory: Path
    host: str = LOOPBACK[0]
    port: int = PORT
    url: str = ""
    at_once: int = 1
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    postgresql: str = ""
    roles: Path | None = None
    keep: Keep = field(default_factory=Keep)
    log: Log = "text"
    machines: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()
    provider: Provider | None = None
    proxy_domain: str = ""
    run_as: UserIds | None = None
    vpn: Vpn | None = None

    def check(self) -> None:
        """Looks whether all of it together is safe.

        Raises:
            SettingsError: others would reach it, and not over TLS; or its TLS cannot be.
        """
        if self.certificate is not None and self.key is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as error:
                raise SettingsError(f"tls: {self.certificate}, {self.key}: cannot be used: {error}") from error
        if self.run_as is not None:
            if self.machines:
                raise SettingsError("run_as: runs of other users reach no machines by ssh; leave machines out")
            try:
                self.run_as.check()
            except ValueError as error:
                raise SettingsError(f"run_as: {error}") from error
        if self.provider is not None and find_spec("joserfc") is None:
            raise SettingsError("provider: takes the package joserfc: pip install dilaton[server]")
        if self.proxy_domain:
            if not self.is_secure:
                raise SettingsError("proxy_domain: takes a url of https://…, of whose cookies browsers take care")
            name = urlsplit(self.origin).hostname or ""
            if f".{name}".endswith(f".{self.proxy_domain}"):
                raise SettingsError(
                    f"proxy_domain: {self.proxy_domain}: the server itself is {name}, for which pages of nodes could "
                    "set cookies; name another domain"
                )
        if self.host in LOOPBACK:
            return
        if not self.url.startswith("https://"):
            raise SettingsError(f"url: {self.url!r}: a server that listens on {self.host} has a URL of https://…")
        if self.certificate is None and not self.proxies:
            raise SettingsError(f"tls: a server that listens on {self.host} has tls, or proxies that do")

    @property
    def origin(self) -> str:
        """What browsers say of pages of this server: scheme, host and port."""
        if self.url:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def origins(self) -> frozenset[str]:
        """Under which origins the server is known: on loopback, under all names of that."""
        if self.url or self.host not in LOOPBACK:
            return frozenset({self.origin})
        scheme = self.origin.partition("://")[0]
        return frozenset(f"{scheme}://{name}:{self.port}" for name in ("127.0.0.1", "[::1]", "localhost"))

    @property
    def hosts(self) -> frozenset[str]:
        """What requests may name as their host. Another is that of a page whose name was pointed at this server."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    @property
    def domain(self) -> str:
        """Below which pages of nodes have hosts of their own, with the port; empty: there are none."""
        port = urlsplit(self.origin).port
        if self.proxy_domain:
            return self.proxy_domain + (f":{port}" if port else "")
        # Browsers take all names below it for their own machine (RFC 6761), and so does nobody else.
        return "" if self.url or self.host not in LOOPBACK else f"localhost:{port}"

    def label_of(self, host: str) -> str | None:
        """The first part of the name of a host that is a page's of a node; None: it is another host."""
        label, _, rest = host.partition(".")
        return label if rest and rest == self.domain else None

    def origin_of(self, label: str) -> str:
        """The origin of a page of a node."""
        return f"{self.origin.partition(':')[0]}://{label}.{self.domain}"

    @property
    def is_secure(self) -> bool:
        """Whether people reach it over TLS, so that cookies travel over nothing else."""
        return self.origin.startswith("https:")

    def spread(
        self, machines: int, taken: Iterable[str] = (), doubted: Collection[str] = ()
    ) -> tuple[int, tuple[str, ...]]:
        """Over how many machines made of this one a run is spread that is over so many, and over which hosts instead.

        Args:
            machines: How many it is to have.
            taken: The hosts that runs have which go on; those that the fewest have come first, then as they are named.
            doubted: Those that come last.

        Raises:
            ValueError: there are not so many hosts.
        """
        if machines == 1 or not self.machines:
            return machines, ()
        if machines > len(self.machines):
            raise ValueError(f"{machines}: this server has {len(self.machines)} machines")
        count = Counter(taken)
        return 1, tuple(sorted(self.machines, key=lambda host: (host in doubted, count[host]))[:machines])

    @property
    def database(self) -> Path:
        """The file of the database, where it is one of SQLite."""
        return self.directory / "server.sqlite"

    @property
    def runs(self) -> Path:
        """The directory of the runs' directories."""
        return self.directory / "runs"

    @property
    def saved(self) -> Path:
        """The directory of saved labs."""
        return self.directory / "saved"

    @property
    def layouts(self) -> Path:
        """The directory of what is kept of the drawings of labs."""
        return self.directory / "layouts"


Registry = Annotated[str, Field(pattern=r"^(http://)?[A-Za-z0-9.-]+(:[0-9]{1,5})?$")]


class Tls(Written):
    """Files of PEM."""

    certificate: Path
    key: Path


class RunAs(Written):
    """User ids for runs; see `runs.user_ids`."""

    first: int = Field(ge=1000, le=(1 << 32) - 2)
    count: int = Field(ge=1, le=1 << 16)

    @model_validator(mode="after")
    def _are_numbers(self) -> RunAs:
        if self.first + self.count >= 1 << 32:
            raise ValueError(f"user ids are less than {(1 << 32) - 1}")
        return self


class ProviderSaid(Written):
    """By whom people log in (OpenID Connect); see `access.single_sign_on.Provider`."""

    issuer: str = Field(max_length=255)
    """Its URL, of https://, or on this machine."""
    client: str = Field(min_length=1, max_length=255)
    secret: Path | None = None
    """A file that has it."""
    scopes: tuple[Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")], ...] = Provider.scopes
    name_claim: str = Provider.name_claim
    groups_claim: str = Provider.groups_claim

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str) -> str:
        if not is_safe(issuer):
            raise ValueError("a URL of https://…")
        return issuer


class VpnSaid(Written):
    """Where WireGuard of people's machines is answered; see `Vpn`."""

    listen: str
    """Address and UDP ports, of which each tunnel takes one, as 0.0.0.0:51820-51849."""
    name: str = Field(default="", pattern=r"^[A-Za-z0-9.:-]{0,255}$")
    """By which machines find this one, where the URL is that of a proxy."""

    @field_validator("listen")
    @classmethod
    def _has_ports(cls, listen: str) -> str:
        if not places(listen)[0][1]:
            raise ValueError(f"{listen}: has no port; write which ones, as {listen}:51820-51849")
        return listen


class KeepSaid(Written):
    """What is kept; see `database.tidying.Keep`."""

    events: int = Field(default=Keep.events, ge=1000)
    audit: int = Field(default=Keep.audit, ge=1000)
    run_days: int | None = Field(default=None, ge=1)


class ServerFile(Written):
    """What a file for `dilaton serve --config` may say; `None` and what is empty: as without it."""

    listen: str | None = Field(default=None, pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s\[\]]+)(:[0-9]{1,5})?$")
    """Address and port."""
    url: str = Field(default="", pattern=r"^(https?://[^/\s?#@]+/?)?$")
    """Under which people reach it, without a path."""
    tls: Tls | None = None
    proxies: tuple[str, ...] = ()
    """Addresses of proxies, whose X-Forwarded-For is believed."""
    data: Path | None = None
    database: str = Field(default="", pattern=f"^({re.escape(SCHEME)}.+)?$")
    """postgresql://USER@HOST/NAME; libpq's ~/.pgpass and variables hold too."""
    roles: Path | None = None
    """A file of roles and groups."""
    keep: KeepSaid = KeepSaid()
    """What is kept, and for how long."""
    log: Log = "text"
    machines: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$")], ...] = ()
    """Hosts that runs may be spread over, as ssh knows them."""
    registries: tuple[Registry, ...] = ()
    """From which administrators may pull images; of one without TLS with http:// before it."""
    provider: ProviderSaid | None = None
    """By whom people log in."""
    proxy_domain: str = Field(default="", pattern=r"^((\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+)?$")
    """Below which each page of a node that is shown has a host of its own, as *.labs.example.org."""
    at_once: int | None = Field(default=None, ge=1, le=10_000)
    run_as: RunAs | None = None
    """Of each person's runs, where the server is root."""
    vpn: VpnSaid | None = None
    """Ports by which people's machines come into the networks of runs."""

    @field_validator("listen")
    @classmethod
    def _has_port(cls, listen: str | None) -> str | None:
        if listen and listen.rpartition(":")[2].isdecimal() and int(listen.rpartition(":")[2]) > 65535:
            raise ValueError("a port is at most 65535")
        return listen


def of_file(path: Path) -> dict[str, Any]:
    """The settings that a file has, for `Settings`. Paths in it are from its own directory.

    Raises:
        LabError: it has mistakes.
    """
    said = read_written(ServerFile, path)
    base = path.absolute().parent
    found: dict[str, Any] = {"url": said.url.rstrip("/"), "proxies": said.proxies, "postgresql": said.database}
    if said.listen:
        host, _, port = (
            said.listen.rpartition(":") if re.search(r"(\]|[^:]):[0-9]+$", said.listen) else (said.listen, "", "")
        )
        found["host"] = host.strip("[]")
        if port:
            found["port"] = int(port)
    if said.tls:
        found |= {"certificate": base / said.tls.certificate, "key": base / said.tls.key}
    if said.data:
        found["directory"] = base / said.data
    found["proxy_domain"] = said.proxy_domain.removeprefix("*.")
    found["log"], found["registries"], found["machines"] = said.log, said.registries, said.machines
    found["keep"] = Keep(**said.keep.model_dump())
    if said.roles:
        found["roles"] = base / said.roles
    if said.provider:
        found["provider"] = _provider(said.provider, base)
    if said.run_as:
        found["run_as"] = UserIds(said.run_as.first, said.run_as.count)
    if said.vpn:
        found["vpn"] = Vpn(tuple(places(said.vpn.listen)), said.vpn.name)
    if said.at_once is not None:
        found["at_once"] = said.at_once
    return found


def _provider(said: ProviderSaid, base: Path) -> Provider:
    """A provider, with its secret.

    Raises:
        LabError: that cannot be read.
    """
    secret = ""
    if said.secret is not None:
        file = base / said.secret
        try:
            secret = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise LabError([Problem(str(file), 0, 0, "provider.secret", f"cannot be read: {why}")]) from error
    return Provider(**said.model_dump(exclude={"secret"}), secret=secret)
