# MariaDB makes its system tables, serves a client, and shuts down. By itself it reserves 8 TB of address space.
set -- --no-defaults --user=root --datadir=/tmp/data --innodb-buffer-pool-size-max=128M
mariadb-install-db "$@" --skip-test-db >/tmp/log 2>&1 || cat /tmp/log
mariadbd "$@" --socket=/tmp/socket --skip-networking 2>/tmp/log &
for _ in $(seq 600); do [ -S /tmp/socket ] && break; sleep 0.1; done
[ -S /tmp/socket ] || { cat /tmp/log; exit 1; }
mariadb --no-defaults -N -S /tmp/socket -e '
    create database d; use d; create table t (i int primary key, at timestamp default now());
    insert into t (i) values (1), (2), (3); do sleep(100);
    select sum(i), max(timestampdiff(second, at, now())) >= 100 from t; shutdown'
wait
