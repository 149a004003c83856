#!/usr/bin/env bash
# CTest case apps/cluster_join: workers that join each other, and what asks
# them, by processes on loopback that are killed, stopped and refused.
source "$(dirname "$0")/harness.sh"
two=$here/graphs/two_processes.pbtxt
started=()
trap 'kill -CONT "${started[@]}" 2>/dev/null
  kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
(umask 077 && echo "the secret of this test" >"$work/secret")

# serve TASK ARGUMENTS...: starts a worker, and waits until it is ready. `pid`
# is its process, and `address` where it listens.
serve() {
  start "$1" tagflow worker --task "$1" --secret-file secret "${@:2}"
  address=$(sed -n 's/^ready: //p' "$work/$1.out")
}
# members: how many the directory knows.
members() {
  (cd "$work" && "$bin/tagflow" cluster status --cluster "$directory" \
    --secret-file secret 2>/dev/null) | grep -c '^/job:'
}
# wait_for COUNT: waits until so many are members.
wait_for() {
  cases=$((cases + 1))
  until [ "$(members)" = "$1" ]; do sleep 0.01; done
}

# are_members COUNT: so many are members already.
are_members() {
  cases=$((cases + 1))
  local actual
  actual=$(members)
  [ "$actual" = "$1" ] || complain "$actual members, not $1" worker --join
}

serve 0
directory=$address
serve 1 --join "$directory"
first=$pid
are_members 2
serve 2 --join "$address"
second=$pid
are_members 3

# As docs/processes.md has them, where workers have other ports:
#   ready: localhost:4000
#   ready: localhost:43801
#   y = float[] 48.0
expect 0 '^/job:worker/task:2 .* free, 0 steps running, 0 finished' - \
  tagflow cluster status --cluster "$address" --secret-file secret
expect 0 '^y = float\[\] 48.0$' - tagflow run "$two" --feed n=5 --feed x=1.5 \
  --fetch y --cluster "$address" --secret-file secret
expect 0 '"task":"/job:worker/task:1","address":"localhost:[0-9]+","devices":' \
  - tagflow cluster status --cluster "$directory" --secret-file secret --json

# A worker that is stopped is lost, and one that goes on joins anew.
kill -STOP "$first"
wait_for 2
kill -CONT "$first"
wait_for 3

# One that is killed makes room for another process of its task.
kill -KILL "$second"
wait_for 2
serve 2 --join "$directory"
are_members 3

# refused REASON ARGUMENTS...: a worker that joins so is refused for good.
refused() {
  cases=$((cases + 1))
  (cd "$work" && "$bin/tagflow" worker "${@:2}" --join "$directory" \
    >"$work/stdout" 2>"$work/stderr")
  local code=$?
  [ "$code" = 1 ] && grep -q "$1" "$work/stderr" ||
    complain "exit code $code, not 1 and the reason" worker "${@:2}"
  [ -s "$work/stdout" ] &&
    complain "it says that it is ready" worker "${@:2}"
}
(umask 077 && echo "another secret" >"$work/other")
refused 'is of another cluster' --task 3 --secret-file secret --name other
refused 'as it does if the secrets differ' --task 3 --secret-file other
refused 'task:1 is a member already' --task 1 --secret-file secret
expect 2 - 'has no port' tagflow worker --secret-file secret --join localhost
expect 2 - 'look for this worker at localhost: add --listen' \
  tagflow worker --secret-file secret --join 10.0.0.9:4000
expect 2 - 'has no host' tagflow worker --secret-file secret --join :1
expect 4 - 'Connection refused' \
  tagflow cluster status --cluster localhost:1 --secret-file secret
expect 2 - 'names no "secret_file"' tagflow cluster status --cluster localhost:1

# A worker that nobody has joined may be one of a file.
start alone tagflow worker --task 5 --secret-file secret
expect 0 '' 'worker/task:5 at localhost:[0-9]+ knows no other worker: if a' \
  tagflow place "$here/graphs/loop.pbtxt" --secret-file secret \
  --cluster "$(sed -n 's/^ready: //p' "$work/alone.out")"

# A cluster file has workers that need not have joined each other.
cat >"$work/c.json" <<END
{"secret_file": "secret", "tasks": [
  {"task": 0, "job": "worker", "address": "$directory"},
  {"task": 9, "job": "worker", "address": "localhost:1"}]}
END
expect 4 '^/job:worker/task:9  localhost:1  Unavailable: .*refused' \
  '1 of 4 does not answer' tagflow cluster status --cluster c.json

# One whose directory is not there waits, says so, and is ready when it is a
# member.
serve 3
directory=$address
kill "$pid"
wait "$pid"
(cd "$work" && exec "$bin/tagflow" worker --task 4 --secret-file secret \
  --join "$directory" >early.out 2>early.err </dev/null) &
started+=("$!")
cases=$((cases + 1))
until grep -qs 'refused; it waits for the directory' "$work/early.err"; do
  sleep 0.01
done
[ -s "$work/early.out" ] &&
  complain "it is ready without a directory" worker --join
serve 3 --listen "$directory"
until grep -q '^ready: ' "$work/early.out"; do sleep 0.01; done
are_members 2
[ "$(grep -c 'it waits for' "$work/early.err")" = 1 ] ||
  complain "it does not say once that it waits" worker --join

finish
