#!/usr/bin/env bash
# CTest case apps/log_command: --log-format json of workers, masters and runs.
source "$(dirname "$0")/line_runs.sh"
(umask 077 && echo a secret >"$work/s")

# i += (3 - i) / (3 - i): iteration 3 divides by zero.
sed 's/input: "Identity" input: "one"/input: "Identity" input: "share"/' \
  "$graphs/loop.pbtxt" >"$work/failing.pbtxt"
cat >>"$work/failing.pbtxt" <<'END'
node { name: "three" op: "Const" input: "^Identity"
  attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
node { name: "left" op: "Sub" input: "three" input: "Identity"
  attr { key: "T" value { type: DT_INT32 } } }
node { name: "share" op: "FloorDiv" input: "left" input: "left"
  attr { key: "T" value { type: DT_INT32 } } }
END

# logs FILE KEY=VALUE...: FILE.err is JSON, a line each, as docs/operation.md
# has it, and the message of an object with these values matches MESSAGE=.
logs() {
  cases=$((cases + 1))
  python3 - "$work/$1.err" "${@:2}" >"$work/stdout" 2>"$work/stderr" <<'END' || complain "not in the log: $(tail -1 "$work/stderr")" "$@"
import json, re, sys
keys = {"time", "level", "message", "task", "step", "frame", "iteration",
        "node", "peer", "code", "dropped"}
wanted = dict(word.split("=", 1) for word in sys.argv[2:])
events = []
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    assert list(event)[:3] == ["time", "level", "message"], line
    assert set(event) <= keys, line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        event["time"]), line
    assert event["level"] in ("info", "warning", "error"), line
    events.append(event)
message = wanted.pop("MESSAGE", "")
assert any(re.search(message, event["message"]) and
           all(str(event.get(key)) == value for key, value in wanted.items())
           for event in events), [wanted, message, events]
END
}

# --- A worker, and what it says of its masters --------------------------------
start worker tagflow worker --secret-file s --log-format json
worker=$pid
address=$(sed -n 's/^ready: //p' "$work/worker.out")
start joined tagflow worker --task 1 --secret-file s --log-format json \
  --join "$address"
joined=$pid
on=(--secret-file s --cluster "$address")
expect 0 '^Exit = ' - tagflow run "$graphs/loop.pbtxt" --feed n=7 --fetch Exit \
  "${on[@]}"
expect 1 - 'node "share", iteration "while/3"' tagflow run failing.pbtxt \
  --feed n=7 --fetch Exit "${on[@]}"
kill -TERM "$joined"
exits 0 "$joined" "worker that has joined"
kill -TERM "$worker"
exits 0 "$worker" worker
here_=task=/job:worker/task:0
# As docs/operation.md has it:
#   ready: localhost:4000
cases=$((cases + 1))
[ "$(grep -o '"task".*' "$work/worker.err" | grep frame)" = \
  '"task":"/job:worker/task:0","step":1,"code":"InvalidArgument","node":"share","frame":"while","iteration":3}' ] ||
  complain "another line" worker --log-format json
logs worker "$here_" level=info peer='the master' MESSAGE='the master has come'
logs worker "$here_" level=info peer='the master' MESSAGE='the master has left'
logs worker "$here_" level=warning code=InvalidArgument node=share frame=while \
  iteration=3 step=1
logs worker "$here_" level=info MESSAGE='^the worker leaves its cluster$'
logs worker "$here_" level=info MESSAGE='^the worker has left its cluster$'
logs joined task=/job:worker/task:1 MESSAGE='^the worker has joined its cluster$'

# As text, no news are told.
start worker tagflow worker --secret-file s
on=(--secret-file s --cluster "$(sed -n 's/^ready: //p' "$work/worker.out")")
expect 0 '^Exit = ' - tagflow run "$graphs/loop.pbtxt" --feed n=7 --fetch Exit \
  "${on[@]}"
kill -TERM "$pid"
exits 0 "$pid" worker
cases=$((cases + 1))
[ ! -s "$work/worker.err" ] || complain "$(cat "$work/worker.err")" worker

# --- A master, whose worker is lost -------------------------------------------
start worker tagflow worker --secret-file s
worker=$pid
address=$(sed -n 's/^ready: //p' "$work/worker.out")
start master tagflow master --cluster "$address" --secret-file s \
  --log-format json
master=$pid
service=(--secret-file s
  --cluster "tagflow://$(sed -n 's/^ready: //p' "$work/master.out")")
expect 1 - 'iteration "while/3"' tagflow run failing.pbtxt --feed n=7 \
  --fetch Exit "${service[@]}"
kill -KILL "$worker"
wait "$worker" 2>/dev/null
expect 4 - . tagflow run "$graphs/loop.pbtxt" --feed n=7 --fetch Exit \
  "${service[@]}"
kill -TERM "$master"
exits 0 "$master" master
logs master task=/job:master/task:0 level=warning code=InvalidArgument \
  node=share frame=while iteration=3 step=1
logs master task=/job:master/task:0 level=warning code=Unavailable \
  peer=/job:worker/task:0

# --- A run that saves, is restarted, and fails --------------------------------
on=(--cluster c.json)
start cluster tagflow cluster start 3 --respawn --drain-time 60 --file c.json
cluster=$pid
run logged --steps 3000 --restarts 2 --log-format json
reaches logged 400
expect 0 '^/job:worker/task:1 has left$' - \
  tagflow cluster drain worker/1 --cluster c.json
exits 0 "$master" "run --restarts"
logs logged level=info step=50 MESSAGE='^saved step 50 in [0-9.]+ s$'
logs logged level=warning MESSAGE='restart 1 of 2$'
logs logged level=info MESSAGE='^resumed after step [0-9]+ from'
kill "$cluster"
exits 0 "$cluster" "cluster start"
(cd "$work" && "$bin/tagflow" run failing.pbtxt --feed n=7 --fetch Exit \
  --log-format json >failed.out 2>failed.err)
logs failed level=error node=share frame=while iteration=3 \
  MESSAGE='^InvalidArgument: '

# --- A slow reader ------------------------------------------------------------
# Nobody reads stderr: the worker goes on, and ends.
mkfifo "$work/pipe"
python3 - "$work/pipe" >"$work/kept" <<'END' &
import fcntl, os, signal, sys
pipe = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(pipe, 1031, 4096)  # F_SETPIPE_SZ
print("kept", flush=True)
signal.pause()
END
keeper=$!
started+=("$keeper")
until grep -qs kept "$work/kept"; do sleep 0.01; done
(cd "$work" && exec "$bin/tagflow" worker --secret-file s --log-format json \
  >slow.out 2>pipe </dev/null) &
worker=$!
started+=("$worker")
until grep -qs '^ready: ' "$work/slow.out"; do sleep 0.01; done
on=(--secret-file s --cluster "$(sed -n 's/^ready: //p' "$work/slow.out")")
# Messages with long names soon fill the pipe, which has 4 KiB.
sed "s/\"share\"/\"share$(printf 'x%.0s' {1..200})\"/" "$work/failing.pbtxt" \
  >"$work/long.pbtxt"
for _ in {1..8}; do
  expect 1 - 'iteration "while/3"' tagflow run long.pbtxt --feed n=7 \
    --fetch Exit "${on[@]}"
done
kill -TERM "$worker"
exits 0 "$worker" "worker whose log nobody reads"
kill -KILL "$keeper"

expect 2 - 'log-format' tagflow worker --secret-file s --log-format xml

finish
