"""A Mininet script: a row of Open vSwitches under controllers that learn, a host at either end, and one flow of iperf.

/usr/bin/python3 chain.py SWITCHES MBIT_PER_S SECONDS

It prints the rate that the server has seen. The shape is that of the lab in `papers/pads15.py`.
"""

import sys
from itertools import pairwise

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSController, OVSSwitch

FIRST_PORT = 6653
SWITCHES_PER_CONTROLLER = 16
"""ovs-testcontroller takes no more."""


def main() -> None:
    """Builds the row, waits until each switch knows its controller, and measures."""
    count, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    net = Mininet(link=TCLink, switch=OVSSwitch, controller=None)
    groups = (count - 1) // SWITCHES_PER_CONTROLLER + 1
    controllers = [
        net.addController(f"c{number}", controller=OVSController, port=FIRST_PORT + number) for number in range(groups)
    ]
    client, server = net.addHost("client"), net.addHost("server")
    switches = [net.addSwitch(f"s{number + 1}") for number in range(count)]
    row = [client, *switches, server]
    for one, other in pairwise(row):
        net.addLink(one, other, bw=rate, delay="10us")
    net.build()
    for controller in controllers:
        controller.start()
    for number, switch in enumerate(switches):
        switch.start([controllers[number // SWITCHES_PER_CONTROLLER]])
    net.waitConnected()
    # The first packets are those for which the controllers set up the flow.
    net.ping([client, server])
    received, _ = net.iperf([client, server], seconds=seconds, fmt="m")
    net.stop()
    print(received)


main()
