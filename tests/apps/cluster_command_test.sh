#!/usr/bin/env bash
# CTest case apps/cluster_command: `tagflow cluster start`, `tagflow worker`,
# and --cluster, by processes on loopback whose ports are free ones.
source "$(dirname "$0")/harness.sh"
graphs=$here/graphs
loop=$graphs/loop.pbtxt
two=$graphs/two_processes.pbtxt
cp "$graphs/line_x.json" "$graphs/line_y.json" "$work"
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# ends SIGNAL CODE PID WHAT: the process ends with the code.
ends() {
  cases=$((cases + 1))
  kill "-$1" "$3"
  wait "$3"
  local actual=$?
  [ "$actual" = "$2" ] || complain "exit code $actual after $1, not $2" "$4"
}
# is_gone PROCESS...: waits until these processes, which are not ours to wait
# for, have ended.
is_gone() {
  for process in "$@"; do
    while kill -0 "$process" 2>/dev/null; do sleep 0.05; done
  done
}

# --- A cluster of this machine ------------------------------------------------
start cluster tagflow cluster start 3 --devices cpu:2 --file c.json
cluster=$pid
[ "$(cat "$work/cluster.out")" = "ready: c.json" ] ||
  complain "stdout is not the name of the file" cluster start
[ "$(stat -c %a "$work/c.json.secret")" = 600 ] ||
  complain "others can read the secret" cluster start
grep -q "$(cat "$work/c.json.secret")" "$work/cluster.out" \
  "$work/cluster.err" "$work/c.json" &&
  complain "the secret is printed" cluster start
mapfile -t workers < <(pgrep -P "$cluster")
[ "${#workers[@]}" = 3 ] || complain "not three processes" cluster start

# As docs/processes.md has them.
expect 0 '^y = float\[\] 48.0$' - \
  tagflow run "$two" --feed n=5 --feed x=1.5 --fetch y --cluster c.json
grep -qxF 'y = float[] 48.0' "$work/stdout" ||
  complain "it is another line" tagflow run
expect 0 '^transfers   4 per iteration of "loop/while_context"$' - \
  tagflow partition "$two" --fetch y --cluster c.json --out parts
for seed in 1 2 3; do
  expect 0 '^Exit:0 = int32\[\] 50$' - tagflow run "$loop" --feed n=50 \
    --fetch Exit:0 --cluster c.json --scatter "$seed"
done
expect 0 '/job:worker/replica:0/task:2/device:CPU:1: ' - \
  tagflow place "$loop" --cluster c.json --scatter 1
cases=$((cases + 1))
grep -q -- --measure "$work/stdout" &&
  complain "it names an option that clusters do not have" tagflow place
expect 0 '"devices": \[\]' - \
  tagflow run "$loop" --feed n=5 --fetch Exit --cluster c.json --json
expect 0 '"name":"devices_loop"' - \
  tagflow bench devices_loop --trips 100 --repeats 1 --cluster c.json
expect 0 '' - \
  tagflow gradients "$graphs/power.pbtxt" --y y --x x --out slopes.pb
expect 0 '^grad_0 = float\[\] 27.0$' - tagflow run slopes.pb --feed n=3 \
  --feed x=2 --feed w=3 --fetch grad_0 --cluster c.json --scatter 4

# One trace has all workers, with the tokens between them. check_two FILE: it
# has two processes, with arrows both ways.
check_two() {
  cases=$((cases + 1))
  python3 "$here/check_trace.py" "$work/$1" loop/ ||
    complain "the trace is not sound" "$1"
  python3 - "$work/$1" <<'END' || complain "it lacks a process or a token" "$1"
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
task = {e["pid"]: e["args"]["name"] for e in events
        if e["name"] == "process_name"}
assert sorted(task.values()) == ["tagflow /job:worker/task:0 CPU:0",
                                 "tagflow /job:worker/task:1 CPU:0"], task
begun = {e["id"]: task[e["pid"]] for e in events if e["ph"] == "s"}
ways = {(begun[e["id"]], task[e["pid"]]) for e in events if e["ph"] == "f"}
assert len([way for way in ways if way[0] != way[1]]) == 2, ways
fired = {task[e["pid"]] for e in events if e["name"] == "loop/double"}
assert fired == {"tagflow /job:worker/task:1 CPU:0"}, fired
END
}
two_run=(run "$two" --feed x=1.5 --fetch y --cluster c.json)
expect 0 '^y = float\[\] 48.0$' - \
  tagflow "${two_run[@]}" --feed n=5 --passes none --trace t.json
check_two t.json
expect 0 '' '' tagflow "${two_run[@]}" --feed n=5 --repeat 3 --trace t.json
check_two t.json

# As docs/processes.md has it.
step=(step "$two" --feed n=1 --feed x=1.5 --fetch y --cluster c.json)
expect 0 'on /job:worker/task:1 CPU:0/0  Mul "loop/double"$' - \
  tagflow "${step[@]}" --brief --nodes loop/double
grep -qF 'on /job:worker/task:1 CPU:0/1  Mul "loop/double" is skipped: dead' \
  "$work/stdout" ||
  complain "nothing is skipped" "${step[@]}"
grep -qxF 'y = float[] 3.0' "$work/stdout" ||
  complain "there is no result" "${step[@]}"
expect 0 '"kind":"arrive"' - tagflow "${step[@]}" --json --trace t.json
check_two t.json
expect 0 '^ +5  ' 'steps after the first 5 are left out' \
  tagflow "${step[@]}" --limit 5
for option in --html --plan; do
  arguments=("$option")
  [ "$option" = --html ] && arguments+=(page.html)
  expect 2 - "step $option is not supported there yet" \
    tagflow "${step[@]}" "${arguments[@]}"
done
expect 2 - 'leave out --workers' tagflow "${step[@]}" --workers 2

# Variables live at the workers until the master ends, and can be saved.
line=("$graphs/line.pbtxt" --feed x=@line_x.json --feed y=@line_y.json
  --target train --fetch loss --seed 7)
expect 0 '^step 3: loss = ' - tagflow run "${line[@]}" --init init --steps 3
cp "$work/stdout" "$work/here"
expect 0 '^step 3: loss = ' - \
  tagflow run "${line[@]}" --init init --steps 3 --cluster c.json
cmp -s "$work/here" "$work/stdout" ||
  complain "the steps of a cluster differ" tagflow run --steps
expect 1 - 'is not initialized' \
  tagflow run "${line[@]}" --steps 1 --cluster c.json
expect 0 '^step 2: ' - tagflow run "${line[@]}" --init init --steps 2 \
  --save saved --cluster c.json
expect 0 '^step 3: ' 'resumed after step 2' tagflow run "${line[@]}" \
  --init init --steps 3 --save saved --cluster c.json

# The master reads the files of a model.
models=$here/models
for model in keras_lstm/model keras_cnn/model; do
  files=(--signature predict --feed "x=$models/${model%/*}/predict_0.npy")
  expect 0 '^y = float' - tagflow run "$models/$model" "${files[@]}"
  cp "$work/stdout" "$work/here"
  expect 0 '^y = float' - tagflow run "$models/$model" "${files[@]}" \
    --cluster c.json --scatter 2
  cmp -s "$work/here" "$work/stdout" ||
    complain "the model gives something else" tagflow run "$model"
done
expect 0 '^output = float' - tagflow run "$models/partitioned/model.meta" \
  --fetch output --feed "x=$models/partitioned/predict_0.npy" --cluster c.json

# What TensorFlow recorded comes out. On a busy machine, 10,000 trips between
# processes may take longer than the limit of a case.
mkdir "$work/cases"
(cd "$work/cases" && cmake -E tar xf "$here/conform_cases/control_flow.tar.xz")
expect 0 '^274 passed, 0 failed, 0 skipped$' '' \
  tagflow conform "$work/cases" --cluster c.json --scatter 5 --timeout 500
expect 0 '^274 passed, 0 failed, 0 skipped$' '' tagflow conform "$work/cases" \
  --cluster c.json --scatter 5 --mailbox-only --window 2 --timeout 500

# Accelerators are the workers': the process that asks has none.
start accelerated tagflow cluster start 2 --devices cpu:1,stream:1 --file a.json
sed 's|/device:CPU:0|/job:worker/task:0/device:STREAM:0|
  s|/device:CPU:1|/job:worker/task:1/device:STREAM:0|' \
  "$graphs/two_devices.pbtxt" >"$work/two_streams.pbtxt"
expect 0 '^y = float\[\] 48.0$' - tagflow run two_streams.pbtxt \
  --feed n=5 --feed x=1.5 --fetch y --cluster a.json
layers=("$graphs/layers.pbtxt" --feed x=1 --fetch y)
expect 0 '^y = ' - tagflow run "${layers[@]}" --devices stream:1
cp "$work/stdout" "$work/here"
expect 0 '^y = ' - tagflow run "${layers[@]}" --cluster a.json
cmp -s "$work/here" "$work/stdout" ||
  complain "an accelerator of a worker gives something else" tagflow run layers
expect 0 '"launched": [1-9]' - tagflow run "${layers[@]}" --cluster a.json \
  --scatter 1 --json
mkdir "$work/few"
mv "$work"/cases/while_v2_test__* "$work/few"
expect 0 '^[1-9][0-9]* passed, 0 failed, 0 skipped$' '' \
  tagflow conform few --cluster a.json --scatter 6 --timeout 500
ends TERM 0 "$pid" "cluster start"

# --- What is refused ----------------------------------------------------------
run=(run "$loop" --feed n=1 --fetch Exit)
watched='is not supported there yet: it sees the nodes of this process only'
expect 2 - "--learn $watched" \
  tagflow "${run[@]}" --costs x --learn --cluster c.json
expect 2 - "--measure $watched" \
  tagflow place "$loop" --feed n=1 --measure 1 --cluster c.json
for switches in "--devices cpu:2" "--workers 2" --through-wire "--file-root ."; do
  # shellcheck disable=SC2086
  expect 2 - "leave out ${switches%% *}: it is for runs in this process" \
    tagflow "${run[@]}" --cluster c.json $switches
done
expect 2 - 'checkpoint does not run there; what does is loop,' \
  tagflow bench checkpoint --cluster c.json
expect 2 - 'cluster_loop starts its own workers: leave out --cluster' \
  tagflow bench cluster_loop --cluster c.json
sed 's|task:1|task:7|' "$two" >"$work/seventh.pbtxt"
expect 1 - 'no such device; .*; they are those of the tasks /job:worker/task:0, /job:worker/task:1, /job:worker/task:2, and --soft' \
  tagflow run seventh.pbtxt --feed n=5 --feed x=1 --fetch y --cluster c.json
expect 2 - 'requires --cluster' tagflow "${run[@]}" --secret-file c.json.secret
expect 1 - 'node "text" has the op ReadFile, which uses files' tagflow run \
  "$graphs/read_file.pbtxt" --feed 'path="c.json"' --fetch text --cluster c.json
expect 1 - 'edge" is for no worker of the cluster' \
  tagflow run "$graphs/lonely_recv.pbtxt" --fetch y --cluster c.json
expect 1 - 'longer than its time-out of 0.5 s' tagflow run "$loop" \
  --feed n=2000000000 --fetch Exit --timeout 0.5 --cluster c.json
cat >"$work/empty.pbtxt" <<'END'
node { name: "q" op: "FIFOQueueV2" device: "/job:worker/task:1"
  attr { key: "component_types" value { list { type: DT_FLOAT } } } }
node { name: "d" op: "QueueDequeueV2" input: "q" device: "/job:worker/task:1"
  attr { key: "component_types" value { list { type: DT_FLOAT } } } }
END
expect 5 - 'worker/task:1: what comes from no other worker, QueueDequeueV2 "d"' \
  tagflow run empty.pbtxt --fetch d --cluster c.json --trace t.json
cases=$((cases + 1))
grep -q '"name": "d", "ph": "X"' "$work/t.json" ||
  complain "the trace of a run that fails is lost" --trace

# Cluster files; each mistake has a test beside net/config/cluster_file.h.
expect 3 - '\[cluster_file\] "no.json": No such file .*it would be HOST:PORT' \
  tagflow "${run[@]}" --cluster no.json
printf '{"tasks": []}' >"$work/none.json"
expect 1 - 'none.json: \[cluster_file\] the file has no list "tasks" with a' \
  tagflow "${run[@]}" --cluster none.json
# change FILE SED_SCRIPT: a cluster file like the first one.
change() {
  sed "$2" "$work/c.json" >"$work/$1"
}
change twice.json 's/"task": 2/"task": 1/'
expect 1 - 'the task /job:worker/task:1 is there twice' \
  tagflow "${run[@]}" --cluster twice.json
change no_secret.json '/secret_file/d'
expect 2 - 'names no "secret_file": add --secret-file' \
  tagflow "${run[@]}" --cluster no_secret.json
expect 0 '^Exit = int32\[\] 1$' - tagflow "${run[@]}" \
  --cluster no_secret.json --secret-file c.json.secret
change open.json 's/c.json.secret/c.json/'
expect 1 - 'PermissionDenied: .*c.json": others than its owner may use it' \
  tagflow "${run[@]}" --cluster open.json
expect 3 - '\[secret\] "no": No such file' \
  tagflow "${run[@]}" --cluster c.json --secret-file no
expect 1 - 'c.json" belongs to a cluster that runs' \
  tagflow cluster start 1 --file c.json
(umask 077 && echo wrong >"$work/wrong")
expect 1 - 'Unauthenticated: .*task:0: .*as it does if the secrets differ' \
  tagflow "${run[@]}" --cluster c.json --secret-file wrong
change renamed.json 's/"tagflow"/"other"/'
expect 1 - '/job:worker/task:0 is of another cluster' \
  tagflow "${run[@]}" --cluster renamed.json
change moved.json 's/"task": 2/"task": 7/'
expect 1 - '/job:worker/task:2 is at localhost:.*, not /job:worker/task:7' \
  tagflow "${run[@]}" --cluster moved.json

# --- Processes that come and go -----------------------------------------------
# A lost worker has a name, and an exit code of its own.
# loses PROCESS REGEX ARGUMENTS...: the process is killed while tagflow runs.
loses() {
  local victim=$1 regex=$2 runner actual
  shift 2
  cases=$((cases + 1))
  (cd "$work" && exec "$bin/tagflow" "$@" >stdout 2>stderr </dev/null) &
  runner=$!
  sleep 1
  kill -KILL "$victim"
  wait "$runner"
  actual=$?
  if [ "$actual" != 4 ]; then
    complain "exit code $actual, expected 4" tagflow "$@"
  elif ! matches "$work/stderr" "Unavailable: .*$regex"; then
    complain "the lost worker is not named" tagflow "$@"
  fi
}
endless=(run "$two" --feed n=2000000000 --feed x=1 --fetch y)
# A master that is killed leaves its workers to the next one.
(cd "$work" && exec "$bin/tagflow" "${endless[@]}" --cluster c.json \
  >/dev/null 2>&1 </dev/null) &
master=$!
sleep 1
expect 1 - 'task:0 refuses: the worker has another master' \
  tagflow "${run[@]}" --cluster c.json
ends KILL 137 "$master" "${endless[*]}"
expect 0 '^Exit = int32\[\] 1$' - tagflow "${run[@]}" --cluster c.json
loses "$(pgrep -f -P "$cluster" -- '--task 1 ')" /job:worker/task:1 \
  "${endless[@]}" --cluster c.json
expect 4 - 'Unavailable: \[--cluster\] /job:worker/task:1: .*refused' \
  tagflow "${run[@]}" --cluster c.json
# The others serve on.
python3 - "$work" <<'END'
import json, sys
cluster = json.load(open(sys.argv[1] + "/c.json"))
cluster["tasks"] = [t for t in cluster["tasks"] if t["task"] != 1]
json.dump(cluster, open(sys.argv[1] + "/rest.json", "w"))
END
expect 0 '^Exit = int32\[\] 1$' - tagflow "${run[@]}" --cluster rest.json
grep -q 'it is done' "$work/cluster.err" &&
  complain "it says that a command has ended in order" cluster start
ends TERM 4 "$cluster" "cluster start"
grep -q "task:1 (process .*) was ended by signal 9" "$work/cluster.err" ||
  complain "the worker that was killed is not named" cluster start
ls "$work"/c.json* >/dev/null 2>&1 && complain "files are left" cluster start
is_gone "${workers[@]}"

# All ends well by either signal, and with the parent if that is killed.
for signal in INT TERM; do
  start other tagflow cluster start 2
  file=$(sed 's/^ready: //' "$work/other.out")
  ends "$signal" 0 "$pid" "cluster start"
  [ ! -e "$(dirname "$file")" ] || complain "a folder is left" cluster start
done
start killed tagflow cluster start 2 --file k.json
mapfile -t workers < <(pgrep -P "$pid")
ends KILL 137 "$pid" "cluster start"
is_gone "${workers[@]}"
# Its files are taken over.
start again tagflow cluster start 1 --file k.json
ends TERM 0 "$pid" "cluster start"
[ -e "$work/k.json" ] || [ -e "$work/k.json.secret" ] &&
  complain "the files of a killed one stay" cluster start

# Of two that start at once with the same --file, one is refused, and leaves the
# files of the other alone.
for round in 1 2 3; do
  cases=$((cases + 1))
  both=()
  for each in 1 2; do
    rm -f "$work/race$each.out"
    (cd "$work" && exec "$bin/tagflow" cluster start 1 --file r.json \
      >"race$each.out" 2>"race$each.err" </dev/null) &
    both+=("$!")
    started+=("$!")
  done
  until [ "$(cat "$work"/race?.out 2>/dev/null | grep -c '^ready: ')" = 2 ] ||
    ! kill -0 "${both[0]}" 2>/dev/null || ! kill -0 "${both[1]}" 2>/dev/null
  do sleep 0.01; done
  kill -0 "${both[0]}" 2>/dev/null && winner=0 || winner=1
  kill -0 "${both[1 - winner]}" 2>/dev/null &&
    complain "both have the same files" cluster start "$round"
  until grep -q '^ready: ' "$work/race$((winner + 1)).out" ||
    ! kill -0 "${both[winner]}" 2>/dev/null; do sleep 0.01; done
  grep -q 'r.json" belongs to a cluster that runs' \
    "$work/race$((2 - winner)).err" ||
    complain "the other one does not say why it ends" cluster start "$round"
  expect 0 '^Exit = int32\[\] 1$' - tagflow "${run[@]}" --cluster r.json
  ends TERM 0 "${both[winner]}" "cluster start"
  kill "${both[1 - winner]}" 2>/dev/null
done

# What is no secret of this user is refused, and stays.
mkfifo "$work/pipe.json.secret" "$work/pipe"
ln -s c.txt "$work/link.json.secret"
(umask 077 && echo mine >"$work/named" && ln "$work/named" "$work/n.json.secret")
for file in pipe.json n.json; do
  expect 1 - "$file.secret\" is there, and is not a regular file with one name" \
    tagflow cluster start 1 --file "$file"
done
expect 1 - 'link.json.secret": Too many levels of symbolic links' \
  tagflow cluster start 1 --file link.json
expect 1 - 'pipe" is there, and is not a regular file' \
  tagflow cluster start 1 --file pipe
[ "$(cat "$work/named")" = mine ] && [ -p "$work/pipe.json.secret" ] &&
  [ -p "$work/pipe" ] || complain "another's file is gone" cluster start

# A file that takes no byte is as a full disk.
cases=$((cases + 1))
full=$(cd "$work" && trap '' XFSZ && ulimit -f 0 &&
  "$bin/tagflow" cluster start 1 --file full.json 2>&1 | cat)
grep -q 'ResourceExhausted: .*cannot write "full.json.secret": ' <<<"$full" ||
  complain "a full disk is not the reason: $full" cluster start
[ -e "$work/full.json.secret" ] && complain "a secret is left" cluster start

# Without --file, the next one removes the folder of a killed one, and no other.
export TMPDIR=$work/temporary
mkdir -p "$TMPDIR/tagflow-models" "$TMPDIR/other"
touch "$TMPDIR/tagflow-models/"{cluster.json,model} "$TMPDIR/other/cluster.json"
# folder_of FILE: of the cluster that was started so.
folder_of() {
  dirname "$(sed 's/^ready: //' "$work/$1.out")"
}
start killed tagflow cluster start 1 --tls
mapfile -t workers < <(pgrep -P "$pid")
ends KILL 137 "$pid" "cluster start"
is_gone "${workers[@]}"
start alive tagflow cluster start 1
alive=$pid
mkdir "$TMPDIR/tagflow-mine"
start mine tagflow cluster start 1 --file "$TMPDIR/tagflow-mine/cluster.json"
mine=$pid
start again tagflow cluster start 1
ends TERM 0 "$pid" "cluster start"
[ -e "$(folder_of killed)" ] &&
  complain "the folder of a killed one stays" cluster start
expect 0 '^Exit = int32\[\] 1$' - \
  tagflow "${run[@]}" --cluster "$(folder_of alive)/cluster.json"
ends TERM 0 "$alive" "cluster start"
expect 0 '^Exit = int32\[\] 1$' - \
  tagflow "${run[@]}" --cluster "$TMPDIR/tagflow-mine/cluster.json"
ends TERM 0 "$mine" "cluster start"
[ "$(cd "$TMPDIR" && find . -type f | sort | xargs)" = \
  "./other/cluster.json ./tagflow-models/cluster.json ./tagflow-models/model" ] ||
  complain "other files are gone, or left" cluster start
unset TMPDIR

# --- One worker ---------------------------------------------------------------
(umask 077 && echo a secret >"$work/s")
start worker tagflow worker --secret-file s --job ps --task 3
port=$(sed 's/^ready: localhost://' "$work/worker.out")
printf '{"secret_file": "s", "tasks": [{"job": "ps", "task": 3, "address": "localhost:%s", "devices": "cpu:2"}]}' \
  "$port" >"$work/one.json"
expect 0 '^device +/job:ps/replica:0/task:3/device:CPU:0' \
  '\[--cluster\] /job:ps/task:3 has "cpu:1", and "cpu:2" in "one.json"' \
  tagflow place "$loop" --cluster one.json
expect 1 - "cannot listen at localhost port $port: Address already in use" \
  tagflow worker --cluster one.json --job ps --task 3
ends TERM 0 "$pid" worker
start worker tagflow worker --cluster one.json --job ps --task 3 \
  --allow-ops Placeholder,Const
expect 1 - 'has the op Enter, which the list of allowed ops' \
  tagflow "${run[@]}" --cluster one.json --passes none
expect 0 '^device +/job:ps/replica:0/task:3/device:CPU:1' - \
  tagflow place "$loop" --cluster one.json
ends INT 0 "$pid" worker
expect 4 - 'ps/task:3: .*Connection refused' tagflow "${run[@]}" --cluster one.json
start worker tagflow worker --secret-file s --listen 0.0.0.0:0 --insecure
grep -q 'warning: \[--insecure\] whoever is on the path' "$work/worker.err" ||
  complain "there is no warning" --insecure
ends TERM 0 "$pid" worker
mkdir "$work/files"
echo text >"$work/files/a"
start worker tagflow worker --cluster one.json --job ps --task 3 \
  --file-root files --devices cpu:3
grep -q 'task:3 has "cpu:3", and "cpu:2" in "one.json"' "$work/worker.err" ||
  complain "there is no warning of other devices" --devices
grep -q 'warning: \[--listen\]' "$work/worker.err" &&
  complain "it warns of the address of the file" --cluster
expect 0 '^text = string\[\] "text' 'has "cpu:3", and "cpu:2" in' \
  tagflow run "$graphs/read_file.pbtxt" \
  --feed 'path="a"' --fetch text --cluster one.json
ends TERM 0 "$pid" worker
start worker tagflow worker --cluster one.json --job ps --task 3
mkdir "$work/endless"
expect 0 - 'wrote' tagflow run "$graphs/arithmetic.pbtxt" --feed p=true \
  --fetch p:0 --out endless/case
python3 "$here/endless_case.py" "$work/endless/case"
loses "$pid" /job:ps/task:3 conform endless --cluster one.json
start elsewhere tagflow worker --cluster one.json --job ps --task 3 \
  --listen 127.0.0.1:0
grep -q "task:3 listens at \"127.0.0.1:0\", and is looked for at \"localhost:$port\"" \
  "$work/elsewhere.err" || complain "there is no warning" --listen
ends TERM 0 "$pid" worker
expect 2 - 'the cluster needs a secret: add --secret-file' tagflow worker
expect 1 - '0.0.0.0 is not a loopback address; certificates or --insecure allow it' \
  tagflow worker --secret-file s --listen 0.0.0.0:0
expect 2 - '\[--listen\] "localhost" has no port' \
  tagflow worker --secret-file s --listen localhost
expect 2 - 'the job "A/b" is not a lower-case letter' \
  tagflow worker --secret-file s --job A/b
expect 2 - 'there is no device type "nope"' \
  tagflow worker --secret-file s --devices nope
expect 2 - 'not in range' tagflow worker --secret-file s --task -1
expect 2 - '"one.json" has no task /job:worker/task:0' \
  tagflow worker --cluster one.json
expect 1 - 'cannot listen at no.such.host.invalid port 0' \
  tagflow worker --secret-file s --listen no.such.host.invalid:0
expect 2 - 'not in range 1 to 256' tagflow cluster start 0
expect 1 - 'task:0 .process .*ended with exit code 2 before it was ready' \
  tagflow cluster start 1 --devices nope
expect 1 - 'cannot write "no/such/c.json"' \
  tagflow cluster start 1 --file no/such/c.json
finish
