#!/usr/bin/env bash
# CTest case apps/cluster_tls: certificates by the command, and processes on
# loopback that speak by TLS, or refuse each other.
source "$(dirname "$0")/harness.sh"
two=$here/graphs/two_processes.pbtxt
# Those that have ended are no jobs any more: their numbers may be others'.
trap 'kill $(jobs -pr) 2>/dev/null; wait; rm -rf "$work"' EXIT
(umask 077 && echo "the secret of this test" >"$work/secret")
run=(run "$two" --feed n=5 --feed x=1.5 --fetch y)

# says PATTERN ARGUMENTS...: repeats the command until it prints such a line. On
# a busy machine a hello may be too slow.
says() {
  cases=$((cases + 1))
  until (cd "$work" && "$bin/tagflow" "${@:2}" 2>/dev/null) | grep -qE "$1"; do
    sleep 0.05
  done
}

# A cluster for a try. As docs/tls.md has it:
#   ready: c.json
#   y = float[] 48.0
start c tagflow cluster start 3 --tls --file c.json
try=$pid
[ "$(stat -c %a "$work"/c.json.certs/*.key | sort -u)" = 600 ] ||
  complain "others may read a key" cluster start --tls
says '^y = float\[\] 48.0$' "${run[@]}" --cluster c.json
says '^/job:worker/task:2 .* free' cluster status --cluster c.json
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
start w1 tagflow worker --task 1 --secret-file secret $(tls '{process}') \
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
says '^y = float\[\] 48.0$' "${run[@]}" --cluster mine.json
cases=$((cases + 1))
until (cd "$work" && "$bin/tagflow" cluster status --cluster mine.json) |
  grep -q '^/job:worker/task:1 .* free'; do sleep 0.01; done

# Without a file, the certificate of a command says which cluster is meant, and
# so does that of a worker, as the second one here.
says '^y = float\[\] 48.0$' "${run[@]}" --cluster "$first" \
  --secret-file secret $(tls master)
says '^/job:worker/task:1 ' cluster status --cluster "$second" \
  --secret-file secret $(tls master)

# Three machines, each with an address of its own. As docs/machines.md has them:
#   /job:worker/task:0
#   /job:worker/task:1
#   /job:worker/task:2
#   y = float[] 48.0
hosts=(127.0.0.1 127.0.0.2 127.0.0.3)
expect 0 '^three/worker-2.pem$' - tagflow cluster certs --out three \
  --name three --task worker/0=${hosts[0]} --task worker/1=${hosts[1]} \
  --task worker/2=${hosts[2]}
for i in 0 1 2; do
  start machine_$i tagflow worker --task $i --secret-file secret \
    $(tls worker-$i three) --listen "${hosts[i]}:0"
  hosts[i]=$(sed -n 's/^ready: //p' "$work/machine_$i.out")
done
cat >"$work/three.json" <<END
{"name": "three", "secret_file": "secret",
 "tls": {"ca": "three/ca.pem", "cert": "three/{process}.pem",
         "key": "three/{process}.key"},
 "tasks": [
   {"job": "worker", "task": 0, "address": "${hosts[0]}"},
   {"job": "worker", "task": 1, "address": "${hosts[1]}"},
   {"job": "worker", "task": 2, "address": "${hosts[2]}"}]}
END
says '^y = float\[\] 48.0$' "${run[@]}" --cluster three.json
for i in 0 1 2; do
  says "^/job:worker/task:$i  ${hosts[i]}  up" \
    cluster status --cluster three.json
done

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
says '^y = float\[\] 48.0$' "${run[@]}" --cluster mine.json

# With certificates a worker may listen anywhere.
start any tagflow worker --task 0 "${secret[@]}" $(tls worker-0) \
  --listen 0.0.0.0:0
finish
