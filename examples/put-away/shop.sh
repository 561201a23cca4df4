# Places COUNT orders, notes those that were acknowledged, and looks in the end whether all of them are there.
set -e
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
sql="$programs/psql -qAt -h db -U postgres"
noted=/var/lib/acknowledged
left=$1
while [ "$left" -gt 0 ]; do
    $sql -c "insert into orders (shop) values ('$(hostname)') returning id" >> $noted
    left=$((left - 1))
    sleep 0.5
done
$sql -c "select id from orders" | sort > /tmp/there
lost=$(sort $noted | comm -23 - /tmp/there | wc -l)
echo "{\"acknowledged\": $(wc -l < $noted), \"lost\": $lost}"
