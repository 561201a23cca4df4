# BIRD in one network namespace and FRR in another, on two ends of a cable, tell each other their loopbacks by OSPF.
ip netns add bird
ip netns add frr
ip link add eth0 netns bird type veth peer name eth0 netns frr
for end in 'bird 10.0.0.1 10.1.0.1' 'frr 10.0.0.2 10.1.0.2'; do
    set -- $end
    ip -n "$1" address add "$2/30" dev eth0
    ip -n "$1" address add "$3/32" dev lo
    ip -n "$1" link set lo up
    ip -n "$1" link set eth0 up
done
cat >/tmp/bird.conf <<'CONF'
router id 10.1.0.1;
protocol device {}
protocol kernel { ipv4 { export all; }; }
protocol ospf { ipv4 {}; area 0 { interface "eth0" { type pointopoint; }; interface "lo" { stub; }; }; }
CONF
cat >/tmp/frr.conf <<'CONF'
interface eth0
 ip ospf network point-to-point
 ip ospf area 0
interface lo
 ip ospf area 0
router ospf
 ospf router-id 10.1.0.2
CONF
chmod 644 /tmp/frr.conf
install -d -o frr -g frr /run/frr
ip netns exec bird bird -c /tmp/bird.conf -s /tmp/bird.ctl -P /tmp/bird.pid
ip netns exec frr /usr/lib/frr/zebra -d -f /dev/null -A 127.0.0.1
ip netns exec frr /usr/lib/frr/ospfd -d -f /tmp/frr.conf -A 127.0.0.1
sleep 60
ip -n bird route get 10.1.0.2 | grep -o 'via [0-9.]*'
ip -n frr route get 10.1.0.1 | grep -o 'via [0-9.]*'
