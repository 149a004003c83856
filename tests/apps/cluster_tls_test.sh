#!/usr/bin/env bash
# CTest case apps/cluster_tls: certificates by the command, and processes on
# loopback that speak by TLS, or refuse each other.
source "$(dirname "$0")/harness.sh"
two=$here/graphs/two_processes.pbtxt
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
(umask 077 && echo "the secret of this test" >"$work/secret")
run=(run "$two" --feed n=5 --feed x=1.5 --fetch y)

# A cluster for a try. As docs/tls.md has it:
#   ready: c.json
#   y = float[] 48.0
start c tagflow cluster start 3 --tls --file c.json
try=$pid
[ "$(stat -c %a "$work"/c.json.certs/*.key | sort -u)" = 600 ] ||
  complain "others may read a key" cluster start --tls
expect 0 '^y = float\[\] 48.0$' - tagflow "${run[@]}" --cluster c.json
expect 0 '^/job:worker/task:2 .* free' - \
  tagflow cluster status --cluster c.json
python3 - "$work/c.json" "$work/plain.json" <<'END'
import json, sys
cluster = json.load(open(sys.argv[1]))
del cluster["tls"]
json.dump(cluster, open(sys.argv[2], "w"))
END
expect 1 - 'the peer speaks with TLS, and this process without' \
  tagflow "${run[@]}" --cluster plain.json
kill -TERM "$try"
wait "$try"
[ -e "$work/c.json.certs" ] && complain "the certificates stay" cluster start

# As docs/tls.md has them:
#   certs/ca.key
#   certs/ca.pem
#   certs/master.key
#   certs/master.pem
#   certs/worker-0.key
#   certs/worker-0.pem
#   certs/worker-1.key
#   certs/worker-1.pem
expect 0 '^certs/worker-1.pem$' - tagflow cluster certs --out certs \
  --name mine --task worker/0 --task worker/1=localhost,10.0.0.7
[ "$(wc -l <"$work/stdout")" = 8 ] || complain "not eight files" cluster certs
expect 1 - 'ca.pem" is there already' tagflow cluster certs --out certs \
  --name mine --task worker/0
expect 2 - 'is not JOB/NUMBER' tagflow cluster certs --out d --task worker
expect 2 - '"a b" is not the name of a host' \
  tagflow cluster certs --out d --task 'worker/0=a b'
expect 0 '^others/ca.pem$' - tagflow cluster certs --out others --name mine \
  --task worker/0 --task worker/1

# tls NAME [FOLDER]: the switches of a process.
tls() {
  local folder=${2:-certs}
  echo --tls-ca "$folder/ca.pem" --tls-cert "$folder/$1.pem" \
    --tls-key "$folder/$1.key"
}
secret=(--name mine --secret-file secret)
start w0 tagflow worker --task 0 "${secret[@]}" $(tls worker-0)
first=$(sed -n 's/^ready: //p' "$work/w0.out")
start w1 tagflow worker --task 1 "${secret[@]}" $(tls '{process}') \
  --join "$first"
second=$(sed -n 's/^ready: //p' "$work/w1.out")
cat >"$work/mine.json" <<END
{"name": "mine", "secret_file": "secret",
 "tls": {"ca": "certs/ca.pem", "cert": "certs/{process}.pem",
         "key": "certs/{process}.key"},
 "tasks": [
   {"job": "worker", "task": 0, "address": "$first"},
   {"job": "worker", "task": 1, "address": "$second"}]}
END
expect 0 '^y = float\[\] 48.0$' - tagflow "${run[@]}" --cluster mine.json
cases=$((cases + 1))
until (cd "$work" && "$bin/tagflow" cluster status --cluster mine.json) |
  grep -q '^/job:worker/task:1 .* free'; do sleep 0.01; done

# Who is refused, and why, on both sides.
expect 1 - 'was issued by another authority, "CN = tagflow mine"' \
  tagflow "${run[@]}" --cluster mine.json $(tls master others)
expect 1 - 'the certificate of this process is for tagflow://mine/worker/1' \
  tagflow "${run[@]}" --cluster mine.json $(tls worker-1)
expect 1 - 'is for tagflow://mine/worker/1, not tagflow://mine/worker/0' \
  tagflow worker --task 0 "${secret[@]}" $(tls worker-1)
expect 2 - 'tls-ca requires --tls-cert' tagflow worker "${secret[@]}" --tls-ca certs/ca.pem
chmod 640 "$work/certs/master.key"
expect 1 - 'others than its owner may use it' \
  tagflow "${run[@]}" --cluster mine.json
chmod 600 "$work/certs/master.key"
expect 3 - 'certs/nobody.pem' tagflow "${run[@]}" --cluster mine.json \
  --tls-ca certs/ca.pem --tls-cert certs/nobody.pem --tls-key certs/master.key

# Certificates are renewed while the workers run. As docs/tls.md has it:
#   certs/master.key
expect 0 '^certs/master.key$' - tagflow cluster certs --out certs --name mine \
  --task worker/0 --renew
cp "$work"/others/* "$work/certs/"
expect 0 '^y = float\[\] 48.0$' - tagflow "${run[@]}" --cluster mine.json

# With certificates a worker may listen anywhere.
start any tagflow worker --task 0 "${secret[@]}" $(tls worker-0) \
  --listen 0.0.0.0:0
finish
