#!/usr/bin/env bash
# CTest case apps/drain_command: workers that leave by `tagflow cluster drain`
# and by SIGTERM, while a run goes on.
source "$(dirname "$0")/line_runs.sh"

# ends CODE PID WHAT: the process ends with the code.
ends() {
  cases=$((cases + 1))
  wait "$2"
  local actual=$?
  [ "$actual" = "$1" ] || complain "exit code $actual, not $1" "$3"
}

# A run with --restarts goes on, and its weights are those of one that lost
# nobody. As docs/operation.md has it:
#   ready: c.json
#   /job:worker/task:1 has left
start cluster tagflow cluster start 3 --respawn --drain-time 60 --file c.json
cluster=$pid
expect 0 '^step 12000: ' - \
  tagflow run "${line[@]}" --steps 12000 --save undisturbed
run drained --steps 12000 --restarts 2
for round in 1 2; do
  reaches drained $((round * 800))
  expect 0 "^/job:worker/task:$round has left\$" - \
    tagflow cluster drain "worker/$round" --cluster c.json
done
ends 0 "$master" "run --restarts"
# The next step comes while the worker leaves, or after it.
leaves='(is leaving the cluster: it runs no further step|has left: .*)'
for round in 1 2; do
  cases=$((cases + 1))
  grep -qE "/job:worker/task:$round $leaves; restart $round of 2" \
    "$work/drained.err" || complain "$(cat "$work/drained.err")" drained
done
cases=$((cases + 1))
grep -q 'lost' "$work/drained.err" &&
  complain "a worker that leaves is lost: $(cat "$work/drained.err")" run
expect 0 - - tagflow checkpoint diff undisturbed drained
is_said cluster 'ended with exit code 0; another one follows it'

# What cannot be asked says so.
expect 2 - '"worker" is not JOB/NUMBER' \
  tagflow cluster drain worker --cluster c.json
expect 2 - '"c.json" has no task /job:worker/task:7' \
  tagflow cluster drain worker/7 --cluster c.json
kill "$cluster"
ends 0 "$cluster" "cluster start"

# By SIGTERM a worker waits for the step that runs, and ends; without a step it
# ends at once.
(umask 077 && echo a secret >"$work/s")
start worker tagflow worker --secret-file s
address=$(sed -n 's/^ready: //p' "$work/worker.out")
worker=$pid
loop=(run "$graphs/loop.pbtxt" --feed n=100000000 --fetch Exit --secret-file s
  --cluster "$address")
(cd "$work" && exec "$bin/tagflow" "${loop[@]}" >loop.out 2>loop.err) &
master=$!
started+=("$master")
# is_busy: the worker runs a step.
is_busy() {
  (cd "$work" && "$bin/tagflow" cluster status --cluster "$address" \
    --secret-file s 2>/dev/null) | grep -q ' 1 step running'
}
until is_busy || ! kill -0 "$master"; do sleep 0.02; done
kill -TERM "$worker"
ends 0 "$worker" worker
ends 0 "$master" "run that a worker leaves"
cases=$((cases + 1))
grep -qx 'Exit = int32\[\] 100000000' "$work/loop.out" ||
  complain "the step has failed: $(cat "$work/loop.err")" "${loop[@]}"

# The wait has an end, which says so; and a second signal ends it at once.
loop[3]=n=2000000000
endless() {
  start worker tagflow worker --secret-file s --drain-time "$1"
  worker=$pid
  address=$(sed -n 's/^ready: //p' "$work/worker.out")
  loop[9]=$address
  (cd "$work" && exec "$bin/tagflow" "${loop[@]}" >loop.out 2>loop.err) &
  master=$!
  started+=("$master")
  until is_busy || ! kill -0 "$master"; do sleep 0.02; done
  kill -TERM "$worker"
}
endless 0.2
ends 0 "$worker" worker
ends 4 "$master" "run that a worker leaves"
is_said worker '[--drain-time] not all steps were over after 0.2 s'
is_said loop '/job:worker/task:0 has left: '
endless 600
until (cd "$work" && "$bin/tagflow" cluster status --cluster "$address" \
  --secret-file s 2>/dev/null) | grep -q ' leaving, 1 step running'; do
  sleep 0.02
done
kill -TERM "$worker"
ends 143 "$worker" worker
ends 4 "$master" "run whose worker is ended"

finish
