#!/usr/bin/env bash
# CTest case apps/serve_sessions: `tagflow serve --tf-session`, asked by curl,
# which speaks the protocol below gRPC, with messages that protoc writes.
source "$(dirname "$0")/harness.sh"
top=$(cd "$here/../.." && pwd)
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# --- The command line ---------------------------------------------------------
expect 2 - 'say what to serve: MODEL_DIR' tagflow serve
expect 2 - '\[--listen\]' tagflow serve --tf-session --listen nowhere
expect 2 - 'unknown device|no device' \
  tagflow serve --tf-session --devices nothing:1
expect 1 - 'built without gRPC|not a loopback address' \
  tagflow serve --tf-session --listen 0.0.0.0:0
if grep -q 'built without gRPC' "$work/stderr"; then
  finish
  exit
fi

start server tagflow serve --tf-session --listen 127.0.0.1:0 \
  --http 127.0.0.1:0 --devices cpu:2 --workers 2
server=$pid
address=$(sed -n 's/^ready: //p' "$work/server.out")
pages=$(sed -n 's/^http: //p' "$work/server.out")
expect 1 - 'cannot listen' tagflow serve --tf-session --listen "$address"

if ! curl --version 2>/dev/null | grep -q HTTP2 || ! command -v protoc \
  >/dev/null; then
  echo "no curl with HTTP/2, or no protoc: the protocol is not asked"
else
  # ask METHOD REQUEST: the request and the answer, as text.
  ask() {
    local message=$work/message size
    protoc --proto_path="$top" --encode="tensorflow.$1Request" \
      net/proto/master.proto <<<"$2" >"$message"
    size=$(stat -c %s "$message")
    { printf '\0'; printf "\\x$(printf %08x "$size" | sed 's/../&\\x/g;s/\\x$//')"
      cat "$message"; } >"$message.framed"
    curl -s --http2-prior-knowledge -D "$work/head" -o "$work/answer" \
      -H 'content-type: application/grpc' -H 'te: trailers' \
      --data-binary "@$message.framed" \
      "http://$address/tensorflow.MasterService/$1"
    tail -c +6 "$work/answer" | protoc --proto_path="$top" \
      --decode="tensorflow.$1Response" net/proto/master.proto >"$work/stdout"
    cat "$work/head" >"$work/stderr"
  }
  # answers METHOD REQUEST STDOUT_REGEX HEAD_REGEX
  answers() {
    cases=$((cases + 1))
    ask "$1" "$2"
    matches "$work/stdout" "$3" || complain "the answer is not $3" "$1" "$2"
    matches "$work/stderr" "$4" || complain "the head is not $4" "$1" "$2"
  }
  graph='node { name: "a" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {}
      float_val: 42 } } } }'
  answers ListDevices '' 'device:CPU:1' 'grpc-status: 0'
  answers CreateSession "graph_def { $graph }" session_handle 'grpc-status: 0'
  handle=$(sed -n 's/^session_handle: //p' "$work/stdout")
  answers RunStep "session_handle: $handle fetch: 'a:0'" 'name: "a:0"' \
    'grpc-status: 0'
  answers RunStep "session_handle: $handle fetch: 'b:0'" '' 'grpc-status: 5'
  answers CloseSession "session_handle: $handle" '' 'grpc-status: 0'
  answers CloseSession "session_handle: $handle" '' 'grpc-status: 10'
  # What is no message.
  cases=$((cases + 1))
  head -c 3000 /dev/zero | tr '\0' '\377' >"$work/noise"
  curl -s --http2-prior-knowledge -D "$work/stderr" -o "$work/stdout" \
    -H 'content-type: application/grpc' -H 'te: trailers' \
    --data-binary "@$work/noise" \
    "http://$address/tensorflow.MasterService/RunStep"
  matches "$work/stderr" 'grpc-status: [1-9]' || complain "noise is taken" noise
  cases=$((cases + 1))
  curl -s "http://$pages/healthz" >"$work/stdout"
  matches "$work/stdout" '^ok$' || complain "it is not well" healthz
  curl -s "http://$pages/metrics" >"$work/stdout"
  matches "$work/stdout" '^tagflow_sessions 0$' ||
    complain "a session is left" metrics
fi

kill -TERM "$server"
exits 0 "$server" "tagflow serve"
finish
