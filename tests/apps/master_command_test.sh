#!/usr/bin/env bash
# CTest case apps/master_command: `tagflow master`, and --cluster tagflow://,
# by processes on loopback whose ports are free ones.
source "$(dirname "$0")/harness.sh"
two=$here/graphs/two_processes.pbtxt
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

start cluster tagflow cluster start 2 --devices cpu:2 --file c.json
start master tagflow master --cluster c.json --max-sessions 3
master=$pid
address=$(sed -n 's/^ready: //p' "$work/master.out")
service=(--cluster "tagflow://$address" --secret-file c.json.secret)
fed=(--feed n=5 --feed x=1.5 --fetch y)
endless=(--feed n=2000000000 --feed x=1.5 --fetch y)

# steps_running COUNT: waits until the workers run so many steps together.
steps_running() {
  until [ "$(cd "$work" && "$bin/tagflow" cluster status --cluster c.json \
    --json | grep -o '"steps_running": *[0-9]*' | grep -o '[0-9]*$' |
    awk '{ sum += $1 } END { print sum }')" = "$1" ]; do sleep 0.05; done
}

# --- Runs ---------------------------------------------------------------------
# As docs/master_service.md has them, with its lines:
#   ready: c.json
#   ready: localhost:4100
#   y = float[] 48.0
expect 0 '^y = float\[\] 48.0$' - tagflow run "$two" "${fed[@]}" "${service[@]}"
expect 1 - 'DeadlineExceeded.*/job:worker/task:1' \
  tagflow run "$two" "${endless[@]}" "${service[@]}" --timeout 2
expect 0 '"name":"devices_loop"' - \
  tagflow bench devices_loop --trips 100 --repeats 1 "${service[@]}"

# Several clients at once.
clients=()
for client in 1 2 3 4; do
  (cd "$work" && exec "$bin/tagflow" run "$two" "${fed[@]}" "${service[@]}" \
    >"client_$client" 2>&1) &
  clients+=("$!")
done
cases=$((cases + 1))
wait "${clients[@]}"
cat "$work"/client_* >"$work/stdout"
[ "$(grep -cxF 'y = float[] 48.0' "$work/stdout")" = 4 ] ||
  complain "a client has another result" tagflow run

# Variables live at the workers until the master ends, and a client saves them.
cp "$here"/graphs/line_[xy].json "$work"
line=("$here/graphs/line.pbtxt" --feed x=@line_x.json --feed y=@line_y.json
  --target train --fetch loss --seed 7)
expect 0 '^step 3: loss = ' - tagflow run "${line[@]}" --init init --steps 3
cp "$work/stdout" "$work/here"
expect 0 '^step 3: loss = ' - \
  tagflow run "${line[@]}" --init init --steps 3 "${service[@]}"
cmp -s "$work/here" "$work/stdout" ||
  complain "the steps at a service differ" tagflow run --steps
expect 0 '^step 1: loss = ' - tagflow run "${line[@]}" --steps 1 "${service[@]}"
expect 0 '^step 2: ' - tagflow run "${line[@]}" --init init --steps 2 \
  --save saved "${service[@]}"
expect 0 '^step 3: ' 'resumed after step 2' tagflow run "${line[@]}" \
  --init init --steps 3 --save saved "${service[@]}"
model=$here/models/keras_lstm
files=(--signature predict --feed "x=$model/predict_0.npy")
expect 0 '^y = float' - tagflow run "$model/model" "${files[@]}"
cp "$work/stdout" "$work/here"
expect 0 '^y = float' - \
  tagflow run "$model/model" "${files[@]}" "${service[@]}" --scatter 2
cmp -s "$work/here" "$work/stdout" ||
  complain "the model gives something else" tagflow run "$model"

# --- A client that is killed --------------------------------------------------
(cd "$work" && exec "$bin/tagflow" run "$two" "${endless[@]}" "${service[@]}" \
  >killed 2>&1) &
killed=$!
steps_running 2
kill -KILL "$killed"
wait "$killed" 2>/dev/null
steps_running 0  # its loop has ended at the workers
expect 0 '^y = float\[\] 48.0$' - tagflow run "$two" "${fed[@]}" "${service[@]}"

# --- What the workers record --------------------------------------------------
expect 0 'on /job:worker/task:1 CPU:0/1  Mul "loop/double"' '' \
  tagflow step "$two" "${fed[@]}" "${service[@]}" --nodes loop/double
expect 0 '^y = float\[\] 48.0$' '' \
  tagflow run "$two" "${fed[@]}" "${service[@]}" --trace t.json
python3 "$here/check_trace.py" "$work/t.json" loop/ ||
  complain "the trace is not sound" t.json
# Of the runs of others.
(cd "$work" && for _ in $(seq 20); do
  "$bin/tagflow" run "$two" "${fed[@]}" "${service[@]}" --repeat 5 || exit
done >others 2>&1) &
others=$!
#   w.json: 3 runs
expect 0 '^w.json: 3 runs$' '' tagflow cluster trace "${service[@]}" \
  --out w.json --runs 3 --seconds 60
wait "$others" || complain "a run that is watched fails" "$work/others"
python3 "$here/check_trace.py" "$work/w.json" loop/ ||
  complain "the trace of others is not sound" w.json
expect 1 - 'no run has begun and ended within 0.1 s' \
  tagflow cluster trace "${service[@]}" --out w.json --seconds 0.1
expect 2 - 'name a master service' \
  tagflow cluster trace --cluster c.json --out w.json

# --- Recorded cases -----------------------------------------------------------
mkdir "$work/cases"
(cd "$work/cases" &&
  cmake -E tar xf "$here/conform_cases/control_flow.tar.xz") ||
  complain "the cases do not unpack" cmake -E tar
expect 0 '^274 passed, 0 failed, 0 skipped$' '' \
  tagflow conform "${service[@]}" cases

# --- What is refused ----------------------------------------------------------
expect 1 - 'Unimplemented.*places and cuts' \
  tagflow partition "$two" --fetch y "${service[@]}" --out parts
expect 1 - 'both processes are masters' \
  tagflow run "$two" "${fed[@]}" --cluster "$address" \
  --secret-file c.json.secret
expect 2 - 'has no port' tagflow run "$two" "${fed[@]}" \
  --cluster tagflow://localhost --secret-file c.json.secret
expect 2 - 'add --secret-file' \
  tagflow run "$two" "${fed[@]}" --cluster "tagflow://$address"
expect 2 - 'leave out --devices' \
  tagflow run "$two" "${fed[@]}" "${service[@]}" --devices cpu:2
expect 2 - 'not another master' tagflow master --cluster "tagflow://$address"
expect 2 - 'leave out --file-root' \
  tagflow master --cluster c.json --file-root .
expect 2 - 'is a master service: name its workers' \
  tagflow cluster status "${service[@]}"
expect 2 - 'is a master service: name its workers' \
  tagflow cluster drain worker/1 "${service[@]}"
worker=$(grep -o 'localhost:[0-9]*' "$work/c.json" | head -1)
expect 1 - 'is not a master service' tagflow run "$two" "${fed[@]}" \
  --cluster "tagflow://$worker" --secret-file c.json.secret

# --- Its end ------------------------------------------------------------------
(cd "$work" && exec "$bin/tagflow" run "$two" "${endless[@]}" "${service[@]}" \
  >"$work/stdout" 2>"$work/stderr") &
client=$!
steps_running 2
cases=$((cases + 2))
kill -TERM "$master"
wait "$master" || complain "it does not end with 0" tagflow master
wait "$client"
[ $? = 4 ] || complain "the client does not end with 4" tagflow run
grep -q 'the master has ended' "$work/stderr" ||
  complain "it does not say why" tagflow run
expect 4 - 'Unavailable' tagflow run "$two" "${fed[@]}" "${service[@]}"
finish
