# PostgreSQL on the node's disk. Where there is one already, it recovers what was committed, and goes on.
set -e
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
data=/srv/data
as_itself="setpriv --reuid=postgres --regid=postgres --clear-groups"
if [ ! -e $data/done ]; then
    rm -rf $data
    install -d -o postgres -m 700 $data
    $as_itself "$programs/initdb" --auth=trust --no-locale --encoding=UTF8 $data > /var/log/initdb
    echo "host all all all trust" >> $data/pg_hba.conf
    touch $data/done
    sync
fi
exec $as_itself "$programs/postgres" -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB
