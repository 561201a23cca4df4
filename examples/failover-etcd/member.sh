# A member of the store, named as its node; it goes on with its data if it has some.
name=$(hostname)
exec etcd --name "$name" --data-dir /var/lib/etcd-store --logger zap --log-level info \
  --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$name:2380" \
  --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$name:2379" \
  --initial-cluster db1=http://db1:2380,db2=http://db2:2380,db3=http://db3:2380,db4=http://db4:2380,db5=http://db5:2380
