# Redis counts, forgets a key when its virtual minute is over, and serves ten clients at once.
redis-server --save '' --port 0 --unixsocket /tmp/socket >/tmp/log &
for _ in $(seq 600); do [ -S /tmp/socket ] && break; sleep 0.1; done
[ -S /tmp/socket ] || { cat /tmp/log; exit 1; }
ask() { redis-cli -s /tmp/socket "$@"; }
ask set counter 5
ask incr counter
ask set passing 1 ex 60
sleep 59
ask exists passing
sleep 2
ask exists passing
redis-benchmark -s /tmp/socket -n 500 -c 10 -t incr -q >/tmp/log
ask get counter:__rand_int__
ask shutdown
wait
