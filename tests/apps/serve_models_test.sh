#!/usr/bin/env bash
# CTest case apps/serve_models: `tagflow serve MODEL_DIR`, asked by curl.
source "$(dirname "$0")/harness.sh"
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
models=$here/served

# --- The command line ---------------------------------------------------------
expect 2 - 'say where to serve' tagflow serve "$models/count"
expect 2 - 'not both' tagflow serve "$models/count" --tf-session
expect 2 - '\[--rest\]' tagflow serve "$models/count" --rest nowhere
expect 2 - 'two models have the name' \
  tagflow serve "$models/count" "$models/count" --rest 127.0.0.1:0
expect 2 - 'it is for one MODEL_DIR' \
  tagflow serve "$models/count" "$models/half_plus" --name x --rest 127.0.0.1:0
expect 3 - 'there is no folder' tagflow serve nowhere --rest 127.0.0.1:0
mkdir "$work/empty"
expect 3 - 'has no version to serve' tagflow serve empty --rest 127.0.0.1:0
expect 1 - 'uses files: node .contents. has the op ReadFile' \
  tagflow serve "$models/reads_file" --rest 127.0.0.1:0
expect 1 - 'not a loopback address' \
  tagflow serve "$models/count" --rest 0.0.0.0:0
echo 'max_batch_size { value: 0 }' >"$work/wrong"
expect 1 - 'max_batch_size is 0' \
  tagflow serve "$models/count" --rest 127.0.0.1:0 --batching wrong
for text in 'model_config_list {' 'no text of a message' ''; do
  printf '%s' "$text" >"$work/wrong"
  expect 1 - 'wrong: .*the configuration of models' \
    tagflow serve --config wrong --rest 127.0.0.1:0
done
expect 1 - '\[--config\].* is a folder' \
  tagflow serve --config empty --rest 127.0.0.1:0

if ! command -v curl >/dev/null; then
  echo "no curl: the server is not asked"
  finish
  exit
fi

# gets STATUS REGEX PATH [BODY]: what the server answers, by GET or POST.
gets() {
  local status=$1 regex=$2 path=$3 actual
  cases=$((cases + 1))
  local post=()
  [ $# -lt 4 ] || post=(--data-binary "$4")
  actual=$(curl -s -o "$work/stdout" -w '%{http_code}' "${post[@]}" \
    "http://$rest$path")
  : >"$work/stderr"
  [ "$actual" = "$status" ] ||
    complain "status $actual, not $status" "$path" "$@"
  matches "$work/stdout" "$regex" || complain "the answer is not $regex" "$path"
}

# answers LINE PATH BODY: that is the whole answer.
answers() {
  gets 200 '' "$2" "$3"
  grep -qxF -- "$1" "$work/stdout" || complain "the answer is not $1" "$2"
}

# --- A signal ends a load that never ends -------------------------------------
(cd "$work" && exec "$bin/tagflow" serve "$models/never_loaded" \
  --rest 127.0.0.1:0 >loading.out 2>loading.err) &
loading=$!
started+=("$loading")
until grep -qs 'version 1 of .*: LOADING' "$work/loading.err"; do
  sleep 0.01
done
kill -TERM "$loading"
exits 0 "$loading" "serve, by a signal while it loads"
cases=$((cases + 1))
matches "$work/loading.out" - || complain "it was ready" serve
mkdir "$work/never"
cp -r "$models/half_plus/1" "$work/never/1"
start server tagflow serve never --rest 127.0.0.1:0 --poll-interval 0.05 \
  --drain-time 300
cp -r "$models/never_loaded" "$work/.2"
mv "$work/.2" "$work/never/2"
until grep -q 'version 2 of .*: LOADING' "$work/server.err"; do
  sleep 0.01
done
kill -TERM "$pid"
exits 0 "$pid" "serve, by a signal while a new version loads"

# --- Versions, and what a model is asked --------------------------------------
mkdir "$work/half"
cp -r "$models/half_plus/1" "$work/half/1"
start server tagflow serve half "$models/two_inputs" "$models/count" \
  --rest 127.0.0.1:0 --poll-interval 0.05 --enable-batching --drain-time 300 \
  --max-connections 300
server=$pid
rest=$(sed -n 's/^ready: rest //p' "$work/server.out")
answers '{"predictions": [3.0, 4.5]}' /v1/models/half:predict \
  '{"instances": [2, 5]}'
answers '{"outputs": [3.0]}' /v1/models/half/versions/1:predict \
  '{"inputs": [2]}'
answers '{"predictions": [{"loud": "a!", "scaled": [10.0, 20.0]}]}' \
  /v1/models/two_inputs:predict \
  '{"instances": [{"name": "a", "values": [1, 2]}]}'
gets 200 '"outputs": 1000' /v1/models/count:predict '{"inputs": 1000}'
answers '{"results": [3.0]}' /v1/models/half:regress \
  '{"signature_name": "regress_x", "examples": [{"x": 2}]}'
gets 200 '"state": "AVAILABLE"' /v1/models/half
gets 200 'DT_FLOAT' /v1/models/half/metadata
gets 200 '^ok$' /healthz
gets 200 'tagflow_serving_requests_total\{model="half",code="OK"\} 3' /metrics
gets 404 '"error": ' /v1/models/none:predict '{"instances": [2]}'
gets 400 'has no input' /v1/models/half:predict '{"instances": [{"z": 2}]}'
gets 400 'there is no value at byte' /v1/models/half:predict '{"instances": ['

# --- A new version takes the place of the old one -----------------------------
cp -r "$models/half_plus/2" "$work/half/.2"
mv "$work/half/.2" "$work/half/2"
until curl -s "http://$rest/v1/models/half" | grep -q '"state": "END"'; do
  sleep 0.02
done
gets 200 '"predictions": \[4.0\]' /v1/models/half:predict '{"instances": [2]}'
gets 404 'its state is END' /v1/models/half/versions/1:predict \
  '{"instances": [2]}'

# --- What strangers send ------------------------------------------------------
deep=$(printf '[%.0s' $(seq 10000))
gets 400 'more than 100 values in each other' /v1/models/half:predict \
  "{\"instances\": $deep"
printf 'POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n' \
  'Content-Length: 99999999999' |
  curl -s --max-time 10 "telnet://$rest" >"$work/stdout"
cases=$((cases + 1))
matches "$work/stdout" '^HTTP/1.1 413 ' || complain "a huge body is taken" POST
head -c 100000 /dev/urandom | curl -s --max-time 10 "telnet://$rest" \
  >/dev/null
python3 - "$rest" <<'END'
# 1,000 connections, of which most send half a request, cost the others nothing.
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
held = []
for i in range(1000):
    s = socket.create_connection((host, int(port)))
    s.sendall(b"POST /v1/models/half:predict HTTP/1.1\r\nHost: x\r\n"
              b"Content-Length: 100\r\n\r\n{"[:i % 90])
    held.append(s)
END
gets 200 '"predictions": \[4.0\]' /v1/models/half:predict '{"instances": [2]}'
expect 1 - "cannot listen at 127.0.0.1 port ${rest##*:}" \
  tagflow serve "$models/count" --rest "$rest"

# --- The end: what runs is answered -------------------------------------------
(curl -s "http://$rest/v1/models/count:predict" -d '{"inputs": 20000000}' \
  >"$work/last") &
last=$!
until curl -s "http://$rest/metrics" |
  grep -q 'tagflow_serving_running{model="count"} 1'; do sleep 0.01; done
kill -TERM "$server"
exits 0 "$server" "serve, by a signal"
wait "$last"
cases=$((cases + 1))
matches "$work/last" '"outputs": 20000000' ||
  complain "the last run is lost" last

# --- Configuration ------------------------------------------------------------
cat >"$work/models.txt" <<END
model_config_list {
  config {
    name: "half" base_path: "$models/half_plus" model_platform: "tensorflow"
    model_version_policy { all {} }
    version_labels { key: "stable" value: 1 }
  }
}
END
start server tagflow serve --config models.txt --rest 127.0.0.1:0
server=$pid
rest=$(sed -n 's/^ready: rest //p' "$work/server.out")
gets 200 '3.0' /v1/models/half/labels/stable:predict '{"instances": [2]}'
gets 200 '4.0' /v1/models/half:predict '{"instances": [2]}'
gets 400 'no version label' /v1/models/half/labels/new:predict \
  '{"instances": [2]}'
kill -TERM "$server"
exits 0 "$server" "serve, by a signal"

# --- Overload is refused at once ----------------------------------------------
start server tagflow serve "$models/count" --rest 127.0.0.1:0 \
  --max-active-runs 1 --max-queued-runs 1 --drain-time 0 --workers 1
server=$pid
rest=$(sed -n 's/^ready: rest //p' "$work/server.out")
endless='{"inputs": 4611686018427387904}'
for _ in 1 2; do
  curl -s "http://$rest/v1/models/count:predict" -d "$endless" >/dev/null &
done
until curl -s "http://$rest/metrics" |
  grep -q 'tagflow_serving_running{model="count"} 2'; do sleep 0.01; done
gets 429 'rejects this run' /v1/models/count:predict "$endless"
kill -TERM "$server"
exits 0 "$server" "serve, whose runs have no end"

# --- A second signal does not wait for runs -----------------------------------
start server tagflow serve "$models/count" --rest 127.0.0.1:0 --drain-time 300
server=$pid
rest=$(sed -n 's/^ready: rest //p' "$work/server.out")
curl -s "http://$rest/v1/models/count:predict" -d "$endless" >/dev/null &
until curl -s "http://$rest/metrics" |
  grep -q 'tagflow_serving_running{model="count"} 1'; do sleep 0.01; done
kill -TERM "$server"
while curl -s "http://$rest/healthz" >/dev/null; do sleep 0.01; done
kill -TERM "$server"
exits 143 "$server" "serve, at a second signal"
finish
