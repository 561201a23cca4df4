# nginx with two workers; what curl and, in four pieces, aria2c fetch from it is what it has.
mkdir /tmp/site
head -c 3000000 /dev/urandom >/tmp/site/file
cat >/tmp/nginx.conf <<'CONF'
user root; worker_processes 2; pid /tmp/nginx.pid; error_log stderr; events {}
http { access_log off; server { listen 127.0.0.1:8080; root /tmp/site; } }
CONF
nginx -c /tmp/nginx.conf -e stderr
curl -s http://127.0.0.1:8080/file | cmp - /tmp/site/file && echo curl: the same
aria2c -q -x4 -s4 -k1M -d /tmp -o copy http://127.0.0.1:8080/file
cmp /tmp/copy /tmp/site/file && echo aria2c: the same
nginx -c /tmp/nginx.conf -e stderr -s quit 2>/dev/null
