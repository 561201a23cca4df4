"""What is missing is installed by the command of the machine's distribution, in that distribution's words."""

from __future__ import annotations

import pytest

from dilaton.host import distribution
from dilaton.host.distribution import ARCH, DEBIAN, FEDORA, OTHER, SUSE, UBUNTU, Distribution


@pytest.mark.parametrize(
    ("os_release", "expected"),
    [
        ({"ID": "debian"}, DEBIAN),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, UBUNTU),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, UBUNTU),
        ({"ID": "raspbian", "ID_LIKE": "debian"}, DEBIAN),
        ({"ID": "fedora"}, FEDORA),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, FEDORA),
        ({"ID": "arch"}, ARCH),
        ({"ID": "opensuse-leap", "ID_LIKE": "suse opensuse"}, SUSE),
        ({"ID": "void"}, OTHER),
        ({}, OTHER),
    ],
)
def test_a_distribution_is_known_by_its_name_or_by_what_it_is_made_from(
    os_release: dict[str, str], expected: Distribution
) -> None:
    assert distribution.of(os_release) is expected


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (DEBIAN, "sudo apt-get install iputils-ping frr; then apt-file search -x '/x$' names the package"),
        (
            FEDORA,
            "sudo dnf install iputils; then dnf provides '*/bin/zebra' names the package; then dnf provides '*/bin/x'",
        ),
        (ARCH, "sudo pacman -S iputils; then pacman -F zebra names the package; then pacman -F x names the package"),
        (SUSE, "sudo zypper install iputils; then cnf zebra names the package; then cnf x names the package"),
        (OTHER, "let an administrator install ping; then let an administrator install zebra; then"),
    ],
)
def test_what_is_not_known_by_name_is_left_to_the_distribution_to_tell(here: Distribution, expected: str) -> None:
    wanted = [("ping", "iputils-ping"), ("/usr/lib/frr/zebra", "frr"), ("x", None), ("ping", "iputils-ping")]
    assert here.fix(wanted).startswith(expected)


def test_ubuntu_does_not_have_the_stock_kernel() -> None:
    assert DEBIAN.package("user-mode-linux") == "user-mode-linux"
    assert UBUNTU.package("user-mode-linux") is None
    assert UBUNTU.package("bubblewrap") == "bubblewrap"
