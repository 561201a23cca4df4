"""`ovs`: Open vSwitch with its kernel datapath, as a switch that learns, or under an OpenFlow controller.

Each node has its own database and its own ovs-vswitchd, as machines have. Nothing of it is kept: the database is made
when the node starts. Interfaces called mgmt… are no ports of the switch but the machine's own, with an address each,
for the connection to the controller.
"""

from __future__ import annotations

from dilaton.lab.kinds import is_management
from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Parts, Recipe, Site
from dilaton.plan.kinds.switch import bridge_name
from dilaton.plan.model import OwnFile, ReadyOutput

SCRIPT = "/etc/dilaton/ovs.sh"
READY = "Open vSwitch is ready"

START = """set -e
mkdir -p /run/openvswitch
ovsdb-tool create /run/openvswitch/conf.db
ovsdb-server --detach --no-chdir --pidfile --log-file=/run/openvswitch/ovsdb-server.log \\
    --remote=punix:/run/openvswitch/db.sock /run/openvswitch/conf.db
ovs-vsctl --no-wait {configuration}
ovs-vswitchd --detach --no-chdir --pidfile --log-file=/run/openvswitch/ovs-vswitchd.log
echo "{ready}"
exec tail --pid "$(cat /run/openvswitch/ovs-vswitchd.pid)" -f /run/openvswitch/ovs-vswitchd.log
"""


def make(site: Site) -> Parts:
    """The daemons and how they are configured."""
    sysctls = {f"net/ipv6/conf/{name}/disable_ipv6": "1" for name in site.interfaces}
    text = START.format(configuration=" -- ".join(_configuration(site)), ready=READY)
    process = daemon(site.name, "ovs", ["sh", SCRIPT], ReadyOutput(regex=READY))
    return Parts(sysctls=sysctls, files=[OwnFile(path=SCRIPT, text=text)], processes=[process])


def _configuration(site: Site) -> list[str]:
    """The commands of ovs-vsctl.

    Without a type of its own for the quality of service, Open vSwitch would take away the queue disciplines of its
    ports, and with them the delays and rates of links; `linux-noop` leaves them alone.
    """
    bridge = bridge_name(site.interfaces)
    commands = [f"add-br {bridge}", "--id=@links create qos type=linux-noop"]
    for interface in site.interfaces:
        if not is_management(interface):
            commands += [f"add-port {bridge} {interface}", f"set port {interface} qos=@links"]
    if site.node.stp:
        commands.append(f"set bridge {bridge} stp_enable=true")
    if site.controller is None:
        return [*commands, f"set-fail-mode {bridge} standalone"]
    return [
        *commands,
        f"set-fail-mode {bridge} secure",
        f"set-controller {bridge} {site.controller}",
        f"set controller {bridge} connection-mode=out-of-band",
    ]


RECIPE = Recipe(forwards=lambda interfaces: False, make=make, modules=("openvswitch",))
