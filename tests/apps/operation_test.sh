#!/usr/bin/env bash
# CTest case apps/operation: the examples of apps/examples/operation start the
# worker that they name, and it ends by SIGTERM.
source "$(dirname "$0")/harness.sh"
examples=$here/../../apps/examples/operation
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
(umask 077 && echo a secret >"$work/s")
# The port of a worker that has ended is free.
start worker tagflow worker --secret-file s
address=$(sed -n 's/^ready: //p' "$work/worker.out")
kill "$pid"
wait "$pid"
printf '{"secret_file": "s", "tasks": [{"job": "worker", "task": 0, "address": "%s"}]}' \
  "$address" >"$work/cluster.json"

# serves WHAT ARGUMENTS...: the tagflow command becomes ready, and ends by
# SIGTERM with 0.
serves() {
  local what=$1
  shift
  start worker tagflow "$@"
  cases=$((cases + 1))
  kill -TERM "$pid"
  wait "$pid"
  local actual=$?
  [ "$actual" = 0 ] || complain "exit code $actual after SIGTERM" "$what"
}

# The command of a unit, and of a container. As systemd, it is task 0.
unit=$examples/tagflow-worker.service
command=$(sed -n 's|^ExecStart=/usr/bin/tagflow ||p' "$unit")
[ -n "$command" ] || complain "it starts nothing" "$unit"
command=${command//%i/0}
# shellcheck disable=SC2086
serves "$unit" ${command//\/etc\/tagflow\//}
if command -v systemd-analyze >/dev/null; then
  cases=$((cases + 1))
  sed "s|^ExecStart=/usr/bin/tagflow|ExecStart=$bin/tagflow|" "$unit" \
    >"$work/tagflow-worker@.service"
  # It needs no systemd that runs; what it says of other units is not ours.
  systemd-analyze verify --man=no "$work/tagflow-worker@.service" \
    >"$work/stdout" 2>"$work/stderr"
  grep -F tagflow-worker "$work/stderr" &&
    complain "systemd does not accept the unit" "$unit"
fi

# A worker goes on when nobody reads its warnings any more: it says that nobody
# is there, and comes again.
cases=$((cases + 1))
python3 - "$bin/tagflow" "$work/s" <<'END' || complain "it did not go on" worker
import os, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(60)
reader, writer = os.pipe()
os.close(reader)
worker = subprocess.Popen(
    [sys.argv[1], "worker", "--task", "1", "--secret-file", sys.argv[2],
     "--join", "127.0.0.1:%d" % listener.getsockname()[1]],
    stdout=subprocess.DEVNULL, stderr=writer)
try:
    for _ in range(3):
        listener.accept()[0].close()
finally:
    worker.terminate()
    code = worker.wait()
sys.exit(code)
END

python3 - "$examples/Containerfile" >"$work/command" <<'END'
import json, re, sys
text = open(sys.argv[1]).read()
words = []
for name in ("ENTRYPOINT", "CMD"):
    words += json.loads(re.search(rf"^{name} (\[.*\])$", text, re.M).group(1))
assert words[0] == "tagflow", words
print("\n".join(words[1:]))
END
mapfile -t words <"$work/command"
[ "${#words[@]}" -gt 1 ] || complain "it starts nothing" Containerfile
serves Containerfile "${words[@]//\/etc\/tagflow\//}"

# What a drain waits for is less than what systemd and containers wait for.
seconds() {
  grep -oE -- "$2" "$1" | grep -oE '[0-9]+$'
}
cases=$((cases + 1))
[ "$(seconds "$unit" '--drain-time [0-9]+')" -lt \
  "$(seconds "$unit" 'TimeoutStopSec=[0-9]+')" ] ||
  complain "systemd kills a worker that waits for its steps" "$unit"

finish
