#!/usr/bin/env bash
# CTest case apps/restart_command: `tagflow run --restarts`, over workers that
# are killed while it runs.
source "$(dirname "$0")/line_runs.sh"

# ends CODE FILE: the run of that folder ends with the code.
ends() {
  cases=$((cases + 1))
  wait "$master"
  local actual=$?
  [ "$actual" = "$1" ] && return
  complain "exit code $actual, not $1" run "$2"
  cat "$work/$2.err"
}

start cluster tagflow cluster start 3 --respawn --file c.json
cluster=$pid
# worker TASK: its process.
worker() {
  pgrep -P "$cluster" -f -- "--job worker --task $1 "
}

# As docs/survival.md has them:
#   ready: c.json
#   warning: [--restarts] [step 2300] [net] /job:worker/task:0 has lost its links to /job:worker/task:1: [net|link] /job:worker/task:1: the peer closed the connection; restart 1 of 3
#   info: resumed after step 2200 from "out/model.ckpt-2200"
expect 0 '^step 4000: ' - \
  tagflow run "${line[@]}" --steps 4000 --save undisturbed
run killed --steps 4000 --restarts 3
for loss in 1 2 3; do
  reaches killed $((loss * 900))
  kill -KILL "$(worker $((loss % 3)))"
  until grep -q "restart $loss of 3\$" "$work/killed.err"; do
    kill -0 "$master" 2>/dev/null || break
    sleep 0.01
  done
done
ends 0 killed
is_said killed '; restart 3 of 3'
is_said killed 'resumed after step '
expect 0 - - tagflow checkpoint diff undisturbed killed
is_said cluster '; another one follows it'

# Nor is another bit in what workers write by themselves, while one is killed.
stop_cluster() {
  kill "$cluster"
  wait "$cluster"
}
stop_cluster
start cluster tagflow cluster start 3 --respawn --checkpoints . --file c.json
cluster=$pid
run shards --steps 4000 --restarts 1 --save-on workers
reaches shards 1500
kill -KILL "$(worker 1)"
ends 0 shards
is_said shards 'restart 1 of 1'
expect 0 - - tagflow checkpoint diff undisturbed shards
cases=$((cases + 1))
ls "$work"/shards/model.ckpt-4000.data-00001-of-* >"$work/ls.out" 2>&1 ||
  complain "the workers have no shard" ls shards
ls "$work"/shards/*.tmp-* >"$work/ls.out" 2>&1 &&
  complain "there are temporary files" ls shards
# They may not write elsewhere.
mkdir "$work/elsewhere"
stop_cluster
start cluster tagflow cluster start 3 --respawn --checkpoints elsewhere \
  --file c.json
cluster=$pid
run refused --steps 10 --save-on workers
ends 1 refused
is_said refused 'refused/model.ckpt-trial.data-0000'
is_said refused '/job:worker/task:'
run any --steps 4000
ends 0 any
expect 0 - - tagflow checkpoint diff undisturbed any

# The master is killed; the next one goes on.
run master --steps 4000
reaches master 500
kill -KILL "$master"
wait "$master" 2>/dev/null
run master --steps 4000
ends 0 master
is_said master 'resumed after step '
expect 0 - - tagflow checkpoint diff undisturbed master

# restart_cluster: with three workers, which nobody follows.
restart_cluster() {
  stop_cluster
  start cluster tagflow cluster start 3 --file c.json
  cluster=$pid
}

# The graph names no devices, so two workers can do it.
restart_cluster
run left --steps 4000 --restarts 1 --restart-wait 0.3 --trace left.json
reaches left 1000
kill -KILL "$(worker 1)"
ends 0 left
is_said left '/job:worker/task:1 has not come back: the run goes on without it'
expect 0 - - tagflow checkpoint diff undisturbed left
cases=$((cases + 1))
grep -q '"name":' "$work/left.json" || complain "there is no trace" run left

# A node that names the worker has no place, unless placement is soft.
sed '0,/name: "slope" op: "VarHandleOp"/s||& device: "/job:worker/task:2"|' \
  "$graphs/line.pbtxt" >"$work/pinned.pbtxt"
line[0]=pinned.pbtxt
restart_cluster
run pinned --steps 4000 --restarts 1 --restart-wait 0.1 --soft-placement
reaches pinned 700
kill -KILL "$(worker 2)"
ends 0 pinned
expect 0 - - tagflow checkpoint diff undisturbed pinned
restart_cluster
run stuck --steps 4000 --restarts 2 --restart-wait 0.1
reaches stuck 700
kill -KILL "$(worker 2)"
ends 4 stuck
is_said stuck '[--restarts] without /job:worker/task:2: '
is_said stuck 'asks for "/job:worker/task:2", and there is no such device'

# A worker that joins again, at another address, is found by the directory.
(umask 077 && echo "the secret of this test" >"$work/secret")
on=(--secret-file secret --cluster)
line[0]=$graphs/line.pbtxt
start directory tagflow worker --task 0 --secret-file secret
on+=("$(sed -n 's/^ready: //p' "$work/directory.out")")
# joins: a worker of task 1 has joined.
joins() {
  start joined tagflow worker --task 1 --secret-file secret --join "${on[3]}"
  until (cd "$work" && "$bin/tagflow" cluster status "${on[@]}" 2>/dev/null) |
    grep -q '^/job:worker/task:1 '; do sleep 0.01; done
}
joins
joined=$pid
run found --steps 4000 --restarts 1
reaches found 700
kill -KILL "$joined"
joins
ends 0 found
is_said found 'restart 1 of 1'
expect 0 - - tagflow checkpoint diff undisturbed found

expect 2 - 'requires --save' tagflow run "${line[@]}" --steps 9 --restarts 1 \
  --cluster c.json
expect 2 - 'requires --cluster' tagflow run "${line[@]}" --steps 9 \
  --restarts 1 --save x
expect 2 - 'there are no workers' tagflow run "${line[@]}" --steps 9 \
  --save x --save-on workers
expect 2 - 'neither workers nor master' tagflow run "${line[@]}" --steps 9 \
  --save x --save-on nobody
expect 2 - 'there is no --save DIR' tagflow run "${line[@]}" --steps 9 \
  --save-on master
expect 2 - 'requires --restarts' tagflow run "${line[@]}" --steps 9 \
  --restart-wait 1
finish
