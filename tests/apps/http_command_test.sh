#!/usr/bin/env bash
# CTest case apps/http_command: /healthz and /metrics of workers and of a
# master, as whoever watches them asks for them.
source "$(dirname "$0")/harness.sh"
graphs=$here/graphs
examples=$here/../../apps/examples/operation
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
(umask 077 && echo a secret >"$work/s")

# address_of WHAT FILE: where the started process listens: "ready", or "http".
address_of() {
  sed -n "s/^$1: //p" "$work/$2.out"
}

# get ADDRESS PATH: prints the status of the answer, whose body is in
# $work/body.
get() {
  python3 - "$1" "$2" "$work/body" <<'END'
import http.client, sys
address, path, body = sys.argv[1:]
connection = http.client.HTTPConnection(address, timeout=60)
connection.request("GET", path)
answer = connection.getresponse()
open(body, "wb").write(answer.read())
print(answer.status)
END
}

# answers STATUS REGEX ADDRESS PATH: so does the process; a line matches.
answers() {
  cases=$((cases + 1))
  local actual
  actual=$(get "$3" "$4")
  if [ "$actual" != "$1" ]; then
    complain "status $actual, not $1: $(cat "$work/body")" "$3" "$4"
  elif ! grep -qE -- "$2" "$work/body"; then
    complain "no line is $2: $(cat "$work/body")" "$3" "$4"
  fi
}

# counts VALUE FIGURE ADDRESS: the figure, with its labels, has the value.
counts() {
  cases=$((cases + 1))
  get "$3" /metrics >"$work/stdout"
  grep -qxF -- "$2 $1" "$work/body" ||
    complain "it is: $(grep -F -- "${2%%\{*}" "$work/body")" "$2" "$1"
}

# becomes VALUE FIGURE ADDRESS PID: waits until it does, or the process ends.
becomes() {
  until get "$3" /metrics >"$work/stdout" && grep -qxF -- "$2 $1" "$work/body"
  do
    kill -0 "$4" 2>/dev/null || { complain "it never is" "$2" "$1"; return; }
    sleep 0.02
  done
}

# --- A worker -----------------------------------------------------------------
# As docs/operation.md has it:
#   http: localhost:9400
#   ready: localhost:4000
#   ok
#   master: no
start worker tagflow worker --secret-file s --http localhost:0
worker=$pid
http=$(address_of http worker)
cluster=(--secret-file s --cluster "$(address_of ready worker)")
answers 200 '^ok$' "$http" /healthz
answers 200 '^master: no$' "$http" /healthz
answers 404 '^there is: /healthz, /metrics$' "$http" /
answers 200 '^tagflow_build_info\{version="[0-9.]+"\} 1$' "$http" /metrics
answers 200 '^process_open_fds [0-9]+$' "$http" /metrics
counts 0 tagflow_steps_begun_total "$http"
expect 0 '^Exit = ' '5 runs' tagflow run "$graphs/loop.pbtxt" --feed n=7 \
  --fetch Exit --repeat 5 "${cluster[@]}"
counts 5 tagflow_steps_finished_total "$http"
counts 0 tagflow_steps_running "$http"
expect 1 - DeadlineExceeded tagflow run "$graphs/loop.pbtxt" \
  --feed n=2000000000 --fetch Exit --timeout 0.2 "${cluster[@]}"
counts 6 tagflow_steps_begun_total "$http"
counts 1 'tagflow_steps_failed_total{code="DeadlineExceeded"}' "$http"

# Each line is one of the format; and one server has one set of labels once.
cases=$((cases + 1))
get "$http" /metrics >"$work/stdout"
python3 - "$work/body" 2>"$work/stderr" <<'END' || complain "not the format" /metrics
import re, sys
figure = re.compile(r'([a-z_]+)(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? '
                    r'([0-9.e+-]+|NaN|[+-]Inf)')
family, seen = None, set()
for line in open(sys.argv[1]).read().splitlines():
    words = line.split(" ")
    if words[:2] == ["#", "HELP"]:
        family = words[2]
    elif words[:2] == ["#", "TYPE"]:
        assert words[2] == family and words[3] in ("counter", "gauge"), line
        assert (words[3] == "counter") == family.endswith("_total"), line
    else:
        match = figure.fullmatch(line)
        assert match and match[1] == family, line
        assert (match[1], match[2]) not in seen, line
        seen.add((match[1], match[2]))
assert len(seen) > 30, seen
END

# While it leaves, it is not healthy, and says how many steps it waits for.
(cd "$work" && exec "$bin/tagflow" run "$graphs/loop.pbtxt" --feed n=2000000000 \
  --fetch Exit "${cluster[@]}" >loop.out 2>loop.err) &
master=$!
started+=("$master")
becomes 1 tagflow_steps_running "$http" "$master"
answers 200 '^master: yes$' "$http" /healthz
kill -TERM "$worker"
becomes 1 tagflow_leaving "$http" "$worker"
answers 503 '^the worker is leaving the cluster$' "$http" /healthz
counts 1 tagflow_leaving "$http"
counts 1 tagflow_steps_running "$http"
kill -INT "$master"
exits 0 "$worker" worker
wait "$master"

# --- A master -----------------------------------------------------------------
start cluster tagflow cluster start 2 --devices cpu:2 --respawn --file c.json
start master tagflow master --cluster c.json --http localhost:0
master=$pid
http=$(address_of http master)
answers 200 '^workers: 2 of 2 ready$' "$http" /healthz
expect 0 '^y = float\[\] 48.0$' - tagflow run "$graphs/two_processes.pbtxt" \
  --feed n=5 --feed x=1.5 --fetch y --secret-file c.json.secret \
  --cluster "tagflow://$(address_of ready master)"
counts 1 tagflow_steps_finished_total "$http"
counts 0 tagflow_runs_begun "$http"
counts 1 'tagflow_member_state{task="/job:worker/task:1",state="ready"}' "$http"
expect 0 '^/job:worker/task:1 has left$' - \
  tagflow cluster drain worker/1 --cluster c.json
becomes 1 'tagflow_member_state{task="/job:worker/task:1",state="lost"}' \
  "$http" "$master"
answers 200 '^workers: 1 of 2 ready$' "$http" /healthz
kill -TERM "$master"
exits 0 "$master" master

# --- A run that trains --------------------------------------------------------
cp "$graphs/line_x.json" "$graphs/line_y.json" "$work"
(cd "$work" && exec "$bin/tagflow" run "$graphs/line.pbtxt" --init init \
  --feed x=@line_x.json --feed y=@line_y.json --target train --fetch loss \
  --steps 100000000 --save saved --save-every 100 --http localhost:0 \
  >run.out 2>run.err) &
run=$!
started+=("$run")
until grep -qs '^step 500: ' "$work/run.out" || ! kill -0 "$run"; do
  sleep 0.02
done
http=$(sed -n 's/^info: http: //p' "$work/run.err")
answers 200 '^ok$' "$http" /healthz
answers 200 '^tagflow_saves_total [1-9]' "$http" /metrics
answers 200 '^tagflow_saves_seconds_total [0-9.e-]+$' "$http" /metrics
answers 200 '^tagflow_steps_finished_total [0-9]{3,}$' "$http" /metrics
counts 0 tagflow_restarts_total "$http"
counts 0 tagflow_restores_total "$http"
kill -TERM "$run"
exits 143 "$run" "run --http"

# --- The configuration of a scraper -------------------------------------------
# Its targets and path, as far as this needs no Prometheus.
start worker tagflow worker --secret-file s --http localhost:0
cases=$((cases + 1))
python3 - "$examples/prometheus.yml" "$(address_of http worker)" \
  2>"$work/stderr" <<'END' || complain "it is no configuration" prometheus.yml
import http.client, json, re, sys
text = open(sys.argv[1]).read()
path = re.search(r"^    metrics_path: (\S+)$", text, re.M)[1]
targets = re.search(r"^      - targets: (\[.*\])$", text, re.M)[1]
assert all(re.fullmatch(r"[\w.]+:\d+", each) for each in json.loads(targets))
connection = http.client.HTTPConnection(sys.argv[2], timeout=60)
connection.request("GET", path, headers={
    "Accept": "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"})
answer = connection.getresponse()
assert answer.status == 200, answer.status
assert answer.getheader("Content-Type") == (
    "text/plain; version=0.0.4; charset=utf-8"), answer.getheaders()
END
kill -TERM "$pid"
exits 0 "$pid" worker

# --- What is refused ----------------------------------------------------------
expect 1 - '0.0.0.0 is not a loopback address; --insecure allows it' \
  tagflow worker --secret-file s --http 0.0.0.0:0
expect 1 - '0.0.0.0 is not a loopback address; --insecure allows it' \
  tagflow master --cluster c.json --http 0.0.0.0:0
expect 1 - '0.0.0.0 is not a loopback address' \
  tagflow run "$graphs/loop.pbtxt" --feed n=7 --fetch Exit --http 0.0.0.0:0
expect 2 - '\[--http\] ' tagflow run "$graphs/loop.pbtxt" --feed n=7 \
  --fetch Exit --http nonsense
expect 2 - '\[--http\] ' tagflow worker --secret-file s --http nonsense
expect 2 - '\[--http\] ' tagflow master --cluster c.json --http localhost

finish
