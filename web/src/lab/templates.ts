// Labs to start from, beside the server's examples.

export const SMALL = `# Two hosts and a router between them.
name: small

time:
  tdf: auto # virtual time is as slow as the network needs

nodes:
  client:
  server:
  router: {kind: router}

links:
  - {endpoints: [client, router], rate: 100Mbit, delay: 5ms}
  - {endpoints: [router, server], rate: 20Mbit, delay: 10ms, queue: {limit: 100}} # the bottleneck

run: # any programs of the server's machine
  - {on: client, exec: ping -c 5 -i 0.1 server}

measure: {interfaces: 100ms}

expect:
  - ping.loss == 0%
`;

export const FIRST_NETWORK = `# A dumbbell: a host on each side of a narrow link, which their traffic has to share.
name: first-network

time:
  tdf: auto # virtual time is as slow as the network needs

nodes:
  alice:
  bob:
  left: {kind: router}
  right: {kind: router}

links:
  - {endpoints: [alice, left], rate: 100Mbit, delay: 1ms}
  - {endpoints: [left, right], rate: 20Mbit, delay: 10ms, queue: {limit: 100}} # the bottleneck
  - {endpoints: [right, bob], rate: 100Mbit, delay: 1ms}

run:
  - {on: bob, name: sink, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: alice, name: ping, exec: ping -c 10 -i 0.1 bob}
  - {on: alice, name: bulk, exec: iperf3 -c bob -t 20 -J, after: [ping, sink]}

measure: {interfaces: 100ms, outputs: true, capture: ["left:eth1"]}

expect:
  - ping.loss == 0%
  - bulk.throughput > 15Mbit
`;
