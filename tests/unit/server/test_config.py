"""A server of several people, set up by a file: where it may listen, its TLS, whose word it believes, mistakes."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dilaton.lab.errors import LabError
from dilaton.server.__main__ import main
from dilaton.server.settings import Settings, SettingsError, Vpn, of_file
from tests.conftest import PATIENCE_HOST_S, environment
from tests.unit.server.serving import Client, served

FILE = """\
listen: 0.0.0.0:443
url: https://lab.example.org/
tls: {certificate: tls/cert.pem, key: tls/key.pem}
proxies: [10.0.0.1]
data: data
database: postgresql://dilaton@/dilaton
at_once: 4
"""


def made(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    certificate, key = directory / "cert.pem", directory / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-keyout", key, "-out", certificate, "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )
    return certificate, key


def test_a_file_says_all_of_it_and_its_paths_are_from_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text(FILE)
    settings = Settings(**({"directory": tmp_path} | of_file(tmp_path / "server.yaml")))
    assert (settings.host, settings.port, settings.at_once) == ("0.0.0.0", 443, 4)
    assert settings.directory == tmp_path / "data" and settings.certificate == tmp_path / "tls/cert.pem"
    assert settings.origins == {"https://lab.example.org"} and settings.is_secure
    assert settings.postgresql == "postgresql://dilaton@/dilaton" and settings.proxies == ("10.0.0.1",)
    for listen, host, port in (("[::1]:80", "::1", 80), ("[::]", "::", 8642), ("a.example", "a.example", 8642)):
        (tmp_path / "server.yaml").write_text(f"listen: '{listen}'\n")
        settings = Settings(**({"directory": tmp_path} | of_file(tmp_path / "server.yaml")))
        assert (settings.host, settings.port) == (host, port)
    (tmp_path / "server.yaml").write_text("vpn: {listen: '[::]:51820-51821', name: lab.example.org}\n")
    assert of_file(tmp_path / "server.yaml")["vpn"] == Vpn((("::", 51820), ("::", 51821)), "lab.example.org")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("listn: 0.0.0.0:1", "1:1: listn"),
        ("url: https://a/b", "1:6: url"),
        ("listen: 0.0.0.0:99999", "1:9: listen"),
        ("at_once: 0", "1:10: at_once"),
        ("tls: {certificate: x}", "1:6: tls.key"),
        ("a: [", "1:5"),
        ("database: mysql://x", "1:11: database"),
        ("vpn: {listen: 0.0.0.0}", "1:15: vpn.listen"),
        ("vpn: {listen: '0.0.0.0:9-1'}", "1:15: vpn.listen"),
    ],
)
def test_a_mistake_in_it_has_its_place(
    text: str, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(text)
    with pytest.raises(LabError) as error:
        of_file(file)
    assert f"{file}:{where}" in str(error.value)
    assert main(json.dumps({"config": str(file), "directory": str(tmp_path / "x")})) == 2
    assert where in capsys.readouterr().err and not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"host": "0.0.0.0"}, "url"),
        ({"host": "0.0.0.0", "url": "http://lab.example"}, "url"),
        ({"host": "::", "url": "https://lab.example"}, "tls"),
        ({"certificate": Path("/no/such"), "key": Path("/no/such")}, "tls"),
    ],
)
def test_nobody_else_reaches_a_server_but_over_tls(
    settings: dict[str, object], field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError, match=f"^{field}: "):
        Settings(tmp_path, **settings).check()  # type: ignore[arg-type]
    assert main(json.dumps({"directory": str(tmp_path / "x"), "host": "192.0.2.1"})) == 2
    assert "url: ''" in capsys.readouterr().err and not (tmp_path / "x").exists()


def test_it_speaks_tls_itself_and_its_cookie_is_for_nothing_else(tmp_path: Path) -> None:
    certificate, key = made(tmp_path)
    with served(tmp_path / "data", certificate=certificate, key=key) as server:
        server.settings.check()
        context = ssl.create_default_context(cafile=str(certificate))
        request = urllib.request.Request(
            f"{server.settings.origin}/api/v1/session",
            json.dumps({"once": server.state.one_time.make("owner")}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=context) as answer:
            cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-dilaton=") and "Secure" in cookie


def test_who_is_calling_is_said_by_a_proxy_only_where_one_is_named(tmp_path: Path) -> None:
    for proxies, told in (((), "127.0.0.1"), (("127.0.0.1",), "192.0.2.7")):
        with served(tmp_path / str(len(proxies)), proxies=proxies) as server:
            asked = {"once": server.state.one_time.make("owner")}
            forged = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "elsewhere"}
            answer = server.stranger().ask("POST", "/api/v1/session", asked, **forged)
            assert answer.status == 204 and answer.headers["set-cookie"].startswith("dilaton=")
            entry = server.client().api("GET", "/audit?action=login&count=2")[1]
            assert entry["data"] == {"how": "once", "address": told}


def test_a_server_with_a_log_of_json_writes_nothing_else_and_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "server.yaml").write_text("{listen: '127.0.0.1:0', data: data, log: json}")
    options = json.dumps({"config": str(tmp_path / "server.yaml")})
    command = [sys.executable, "-P", "-m", "dilaton.server", options]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            url, _, once = process.stdout.readline().rpartition(": ")[2].strip().partition("/login?once=")
            settings = Settings(tmp_path, port=int(url.rpartition(":")[2]))
            assert Client(settings).ask("GET", f"/healthz?once={once}").status == 200
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE_HOST_S)
        finally:
            process.kill()
    (line,) = map(json.loads, said.splitlines())
    assert (line["message"], line["path"], line["status"]) == ("request", "/healthz", 200)
    assert process.returncode == 0 and once not in said
