#!/usr/bin/env bash
# CTest case apps/live_page: `tagflow run --inspect`, as a viewer sees it. The
# viewer is tests/apps/live_viewer.py.
source "$(dirname "$0")/harness.sh"
graphs=$here/graphs
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# inspected FILE ARGUMENTS...: starts `program`, with --inspect 0, in the
# background, and waits for the page, whose address is `address`.
program=(tagflow run)
inspected() {
  local file=$work/$1
  shift
  cases=$((cases + 1))
  rm -f "$file.out" "$file.err"
  (cd "$work" && exec "$bin/${program[0]}" "${program[@]:1}" "$@" --inspect 0 \
    >"$file.out" 2>"$file.err" </dev/null) &
  pid=$!
  started+=("$pid")
  until address=$(grep -osE 'http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{32}$' \
    "$file.err"); do
    kill -0 "$pid" 2>/dev/null || { complain "it has no page" "${program[@]}" "$@"
      cat "$file.err"; return; }
    sleep 0.01
  done
}

# viewer WHAT: runs the Python of stdin, with the address and the process.
viewer() {
  cases=$((cases + 1))
  PYTHONPATH=$here python3 - "$address" "$pid" >"$work/stdout" 2>"$work/stderr" ||
    complain "the viewer failed: $(tail -1 "$work/stderr")" "$1"
}

# prints LINE FILE: the run, which is over, has printed that.
prints() {
  cases=$((cases + 1))
  grep -qxF -- "$1" "$work/$2.out" ||
    complain "it printed $(cat "$work/$2.out" "$work/$2.err")" "$1"
}

# --- A loop that is watched ---------------------------------------------------
inspected loop "$graphs/loop.pbtxt" --feed n=100000 --fetch Exit:0 \
  --stop-at while/10
viewer "stops, steps, watches, goes on" <<'END'
import sys
from live_viewer import Viewer, get
address = sys.argv[1]
status, page = get(address)
assert status == 200 and "<title>tagflow run</title>" in page, status
viewer = Viewer(address)
tenth = viewer.held(10, "while")
assert [token["value"] for token in tenth["tokens"]] == ["int32[] 10"], tenth
viewer.ask(do="next", frame="while")
assert viewer.held(11)["tokens"][0]["value"] == "int32[] 11"
viewer.ask(do="watch", tensors=["Add:0"])
viewer.until(lambda picture: picture["watched"])
viewer.held(11)
viewer.ask(do="stop", frame="while", iteration=500)
viewer.held(500)
seen = viewer.until(lambda picture: picture["watched"][0]["times"] > 0)
assert seen["watched"][0]["tag"] == "while/499", seen["watched"]
assert seen["watched"][0]["value"] == "int32[] 500", seen["watched"]
assert seen["stop"] == {"frame": "while", "iteration": 500}, seen["stop"]
part, = seen["parts"]
loop, = part["view"]["loops"]
assert loop["name"] == "while" and loop["trips"] == 500, loop
box = part["view"]["frames"][1]
assert box["name"] == "while" and box["window"] == 10, box
assert part["view"]["devices"][0]["fired"] >= 500, part["view"]["devices"]
# What nobody can ask for does no harm.
viewer.ask(do="stop", iteration=-1)
assert viewer.until(lambda picture: picture["error"])
viewer.ask(do="watch", tensors=["Add:"])
# A name that the run does not have gets the nearest one, and only its viewer
# is told.
other = Viewer(address)
for wish, answer in [
        (dict(do="watch", tensors=["Ad:0"]),
         '[inspect] no node "Ad", did you mean "Add"?'),
        (dict(do="stop", frame="whle", iteration=7),
         '[inspect] no frame "whle", did you mean "while"?')]:
    viewer.ask(**wish)
    told = viewer.until(lambda picture: "did you mean" in picture["error"])
    assert told["error"] == answer, told["error"]
    assert told["stop"] == {"frame": "while", "iteration": 500}, told["stop"]
    for _ in range(2):
        assert not other.picture()["error"]
other.kill()
viewer.ask(do="watch", tensors=[])
viewer.until(lambda picture: not picture["watched"] and not picture["error"])
viewer.ask(do="go")
while viewer.picture() is not None:
    pass
END
exits 0 "$pid" "a run that was watched"
prints 'Exit:0 = int32[] 100000' loop

# --- Who may see it -----------------------------------------------------------
inspected shut "$graphs/loop.pbtxt" --feed n=7 --fetch Exit:0 --stop-at 3
viewer "strangers are refused" <<'END'
import socket, sys, urllib.parse
from live_viewer import Viewer, get, TEXT
address = sys.argv[1]
url = urllib.parse.urlsplit(address)
token = url.query
wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
assert get(address, path="/")[0] == 403
assert get(address, path="/?" + wrong)[0] == 403
assert get(address, path="/?" + token + "0")[0] == 403
assert get(address, path="/nothing?" + token)[0] == 404
assert get(address, "POST")[0] == 405
assert get(address, "HEAD")[0] == 200

def refused(*more, **how):
    try:
        Viewer(address, *more, **how)
    except Viewer.Refused as status:
        return str(status)
    return "not"

# The run is held as long as this one stays.
last = Viewer(address)
assert refused(query="") == "403"
assert refused(query=wrong) == "403"
assert refused("/elsewhere") == "404"
assert refused(fields=["Origin: http://example.com"]) == "403"
assert refused(fields=["Origin: http://" + url.netloc]) == "not"
# No more than eight at a time.
viewers = []
while len(viewers) < 7:  # one may still be about to leave
    try:
        viewers.append(Viewer(address))
    except Viewer.Refused as status:
        assert str(status) == "503"
assert refused() == "503"
viewers.pop().kill()
while refused() == "503":
    pass
for viewer in viewers:
    viewer.kill()
# Bytes that are no WebSocket, a text that is too long, and one that is no
# JSON: the first two end their connection, and nobody else's.
for bad in [b"\xff" * 64, b"\x00", b"\x81\xfe\xff\xff" + b"x" * 4096]:
    hostile = Viewer(address)
    hostile.socket.sendall(bad)
    hostile.kill()
long = Viewer(address)
long.frame(TEXT, b" " * 5000)
while long.picture() is not None:
    pass
stranger = socket.create_connection((url.hostname, url.port))
stranger.sendall(b"\x00\x01GET\r\n\r\n" + bytes(range(256)) * 40)
stranger.close()
last.frame(TEXT, b"[1, 2")
assert last.until(lambda picture: picture["error"])
last.frame(TEXT, b'{"do": "watch", "tensors": [[]]}')
last.held(3)
# A viewer that reads nothing for a while costs no memory, and the run waits.
slow = Viewer(address)
for _ in range(3):
    last.picture()
last.held(3)
last.kill()
slow.kill()
END
# The last viewer has gone: nothing holds the run any more.
exits 0 "$pid" "a run whose viewers were killed"
prints 'Exit:0 = int32[] 7' shut

# --- How a held run ends ------------------------------------------------------
inspected ended "$graphs/loop.pbtxt" --feed n=7 --fetch Exit:0 --stop-at 3
viewer "a signal ends a held run" <<'END'
import os, signal, sys
from live_viewer import Viewer
viewer = Viewer(sys.argv[1])
viewer.held(3)
os.kill(int(sys.argv[2]), signal.SIGTERM)
while viewer.picture() is not None:
    pass
END
exits 143 "$pid" "a held run that was told to end"
expect 1 - 'time-out of 0.2 s' tagflow run "$graphs/loop.pbtxt" --feed n=7 \
  --fetch Exit --inspect 0 --stop-at 3 --timeout 0.2

# --- Over workers -------------------------------------------------------------
start cluster tagflow cluster start 3 --file c.json
cluster=$pid
inspected cluster_run "$graphs/two_processes.pbtxt" --feed n=20 --feed x=1 \
  --fetch y --cluster c.json --stop-at loop/while_context/5
viewer "a loop over two workers" <<'END'
import sys
from live_viewer import Viewer
viewer = Viewer(sys.argv[1])

def held(number):
    def is_held(picture):
        parts = picture["parts"]
        return len(parts) == 2 and all(part["view"] for part in parts) and all(
            any(one["stopped"] and one["number"] == number
                for box in part["view"]["frames"]
                for one in box["iterations"]) for part in parts)
    picture = viewer.until(is_held)
    assert picture is not None, number
    return picture

picture = held(5)
tasks = [part["task"] for part in picture["parts"]]
assert tasks == ["/job:worker/task:0", "/job:worker/task:1"], tasks
assert not picture["can_watch"]
viewer.ask(do="next", frame="loop/while_context")
held(6)
viewer.ask(do="stop", frame="", iteration=15)
held(15)
viewer.kill()
END
exits 0 "$pid" "a run over workers that was held"
prints 'y = float[] 1048576.0' cluster_run
kill -TERM "$cluster"
exits 0 "$cluster" cluster

# --- A training ---------------------------------------------------------------
program=(train_jpegs)
inspected training shapes --draw 12 --batch 8 --side 8 --epochs 100000 \
  --save trained --summaries events
viewer "a training is seen, and held where it is evaluated" <<'END'
import os, signal, sys
from live_viewer import Viewer, get
status, page = get(sys.argv[1])
assert status == 200 and "<title>train_jpegs</title>" in page, status
viewer = Viewer(sys.argv[1])
# The pictures of an evaluation are decoded in a loop.
viewer.ask(do="stop", iteration=1)
viewer.held(1)
seen = viewer.picture()
loop, = {box["name"] for part in seen["parts"] if part["view"]
         for box in part["view"]["frames"]
         for one in box["iterations"] if one["stopped"]}
viewer.ask(do="stop", frame=loop, iteration=2)
viewer.held(2, loop)
assert len(seen["queues"]) == 2, seen["queues"]
assert all(queue["capacity"] > 0 for queue in seen["queues"]), seen["queues"]
viewer.ask(do="watch", tensors=["los:0"])
told = viewer.until(lambda picture: picture["error"])
assert 'no node "los"' in told["error"], told
viewer.ask(do="go")
os.kill(int(sys.argv[2]), signal.SIGTERM)
while viewer.picture() is not None:
    pass
END
exits 143 "$pid" "a training that was held"

# --- What is refused ----------------------------------------------------------
expect 2 - '--stop-at.*nonsense.* is not \[FRAME/\]ITERATION' tagflow run \
  "$graphs/loop.pbtxt" --feed n=7 --fetch Exit --inspect 0 --stop-at nonsense
expect 1 - '\[--stop-at\] no frame "whle", did you mean "while"\?' tagflow run \
  "$graphs/loop.pbtxt" --feed n=7 --fetch Exit --inspect 0 --stop-at whle/3
expect 1 - '\[--watch\] no node "Ad", did you mean "Add"\?' \
  tagflow run "$graphs/loop.pbtxt" --feed n=7 --fetch Exit --watch Ad
expect 1 - '\[--watch\] node "Add" does not run' \
  tagflow run "$graphs/loop.pbtxt" --fetch zero --watch Add
expect 2 - '--inspect' tagflow run "$graphs/loop.pbtxt" --feed n=7 \
  --fetch Exit --stop-at 3
expect 2 - '--inspect' tagflow run "$graphs/loop.pbtxt" --feed n=7 \
  --fetch Exit --inspect 70000

finish
