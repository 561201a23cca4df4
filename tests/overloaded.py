"""A lab that no machine carries in real time: what judges runs, and what adapts to them, is shown by it."""

from __future__ import annotations

NODES = 8
"""Seven links of 5 Gbit/s: every packet is handled sixteen times, which takes this guest about 50 us of CPU time, while
the links bring one every 2.4 us."""

BUFFERS = "{net.ipv4.tcp_rmem: 4096 1048576 67108864, net.ipv4.tcp_wmem: 4096 1048576 67108864}"


def chain(data: str, time: str = "{}") -> str:
    """The lab: one TCP flow over the whole chain.

    Args:
        data: What the flow carries, as iperf3 takes it.
        time: The lab's `time`, as YAML in braces.
    """
    nodes = "".join(f"  n{number}: {{sysctls: {BUFFERS}}}\n" for number in range(NODES))
    links = "".join(
        f"  - {{endpoints: [n{number}, n{number + 1}], rate: 5Gbit, delay: 1ms}}\n" for number in range(NODES - 1)
    )
    last = f"n{NODES - 1}"
    return (
        f"name: chain\ntime: {time}\nnodes:\n{nodes}links:\n{links}run:\n"
        f"  - {{on: {last}, name: server, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}\n"
        f"  - {{on: n0, name: bulk, exec: iperf3 -c {last} -n {data} -J, after: server}}\n"
    )
