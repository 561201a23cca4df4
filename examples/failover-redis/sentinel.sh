# A sentinel writes to its own configuration, so that each has one of its own.
primary=$(getent ahostsv4 r1 | awk 'NR == 1 {print $1}')
cat >/tmp/sentinel.conf <<CONF
port 26379
protected-mode no
sentinel monitor store $primary 6379 2
sentinel down-after-milliseconds store 1000
sentinel failover-timeout store 5000
CONF
exec redis-server /tmp/sentinel.conf --sentinel
