#!/usr/bin/env bash
# CTest case apps/step_command: `tagflow step` by its exit codes, texts and
# pages.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt

# --- The walk -----------------------------------------------------------------
expect 0 '^ +1  root/0      frame root starts with the iteration; arrives: n = int32\[\] 1' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 '^ +[0-9]+  while/0     Less "Less" -> :0 bool\[\] true$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 '^ +[0-9]+  while/1     AddV2 "Add" is skipped: dead$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 '^      ready   LoopCond$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 '^      waits   Switch for 1$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 '^      tokens  .*Add>1>Next' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 'the iteration ends, and with it frame while$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
# An Exit is dead in all iterations but the last, and what is outstanding is
# counted.
expect 0 'frame while starts with the iteration' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
for line in '^ .*while/0     Exit "Exit" is skipped: dead, kept until frame while ends$' \
  '^ .*while/1     Exit "Exit" -> :0 int32\[\] 1; 1 dead token dropped$' \
  '^      open    1 ready, 1 frame$'; do
  grep -qE "$line" "$work/stdout" ||
    complain "this is not said: $line" tagflow step
done
expect 0 '^Exit = int32\[\] 1$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit
expect 0 'compiled to edges do not fire' - \
  tagflow step "$loop" --feed n=1 --fetch Exit --passes edges
expect 0 '' - tagflow step "$loop" --feed n=5 --fetch Exit
cp "$work/stdout" "$work/once"
expect 0 '' - tagflow step "$loop" --feed n=5 --fetch Exit
cmp -s "$work/once" "$work/stdout" ||
  complain "two runs differ" tagflow step
expect 0 '^\{"title":' - \
  tagflow step "$loop" --feed n=2 --fetch Exit --json
python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
kinds = [step["kind"] for step in run["steps"]]
assert {"arrive", "fire", "skip", "end"} == set(kinds), set(kinds)
assert len(run["scopes"]) == 4, run["scopes"]' "$work/stdout" ||
  complain "the JSON is wrong" tagflow step --json

# --- Some of the steps --------------------------------------------------------
# only EXPECTED ARGUMENTS...: the steps' numbers.
only() {
  local wanted=$1 numbers
  shift
  expect 0 '^Exit = int32\[\] 5$' - \
    tagflow step "$loop" --feed n=5 --fetch Exit "$@"
  numbers=$(grep -oE '^ +[0-9]+  ' "$work/stdout" | tr -d ' ' | tr '\n' ' ')
  [ "$numbers" = "$wanted" ] || complain "the steps are $numbers" step "$@"
}
only '3 4 5 ' --from 3 --to 5
only '2 3 ' --from 2 --to 6 --nodes '[nz]*' --frame root
only '5 6 7 ' --to 7 --frame while --brief
grep -qE '^      (ready|tokens)' "$work/stdout" &&
  complain "--brief shows the state" tagflow step --brief
instead() {
  grep -qE "^note: none of the [0-9]+ steps is one of those requested; $1" \
    "$work/stdout" || complain "it is not said that none is left" tagflow step
}
only '' --nodes no_such_node
instead 'these fire: n_enter, zero, .*'
only '' --frame no_such_frame
instead 'the frames are: root, while$'
# Iterations are named as the steps name them.
only '5 6 7 ' --to 7 --frame while/0 --brief
only '' --frame while/99
instead 'the frames are: root, while$'
only '' --from 90000
instead '--from is 90000$'
only '' --from 1 --to 2 --frame while
instead 'of the steps 1 to 2 none is in a frame of --frame$'
expect 2 - '--from' tagflow step "$loop" --fetch Exit --from 0
expect 2 - '--from 5 is after --to 3' \
  tagflow step "$loop" --feed n=3 --fetch Exit --from 5 --to 3
# A loop that is named as the root is not taken for it.
sed 's/s: "while"/s: "root"/' "$loop" >"$work/rooted.pbtxt"
expect 0 '^ +[0-9]+  "root"/1 ' - \
  tagflow step rooted.pbtxt --feed n=1 --fetch Exit --brief
expect 0 '^ +[0-9]+  root/0 ' - \
  tagflow step rooted.pbtxt --feed n=1 --fetch Exit --brief --frame root
grep -q '"root"/' "$work/stdout" && complain "a loop is the root" tagflow step
expect 0 'frame "root" in root, ' - \
  tagflow step rooted.pbtxt --feed n=1 --fetch Exit --frame '"root"' --plan
grep -qE '^ +[0-9]+  root/' "$work/stdout" &&
  complain "the root is a loop" tagflow step
# Steps of the JSON and the page build on each other: none is left out silently.
for filter in '--nodes Add' '--frame root' '--from 2' '--to 2' --brief; do
  # shellcheck disable=SC2086
  expect 2 - '--brief are for the text; --json has all steps' \
    tagflow step "$loop" --feed n=3 --fetch Exit --json $filter
done
expect 2 - '--brief are for the text; --html has all steps' \
  tagflow step "$loop" --feed n=3 --fetch Exit --html none.html --nodes Add
[ -e "$work/none.html" ] && complain "there is a page" tagflow step --html
expect 0 '' - tagflow step "$loop" --feed n=3 --fetch Exit --trace steps.json
python3 "$here/check_trace.py" "$work/steps.json" Add ||
  complain "the trace is wrong" tagflow step --trace
expect 1 - 'no/such/t.json' tagflow step "$loop" --feed n=1 --fetch Exit \
  --trace no/such/t.json
python3 "$here/saved_model.py" "$work/model"
expect 0 '^y = float\[\] -2.0$' - tagflow step model --feed x=2

# --- The plan -----------------------------------------------------------------
expect 0 '^plan of /job:localhost/replica:0/task:0/device:CPU:0$' - \
  tagflow step "$loop" --feed n=1 --fetch Exit --plan
for line in 'frame while in root, parallel_iterations 10: [0-9]+ nodes, ' \
  'kernel Less "Less" waits for ' ':0 next "Next"$' ':0 exit "Exit"$' \
  'arrives n_enter, a loop constant$' ':[01] input [01] of "Add"$'; do
  grep -qE "^ +$line" "$work/stdout" ||
    complain "the plan lacks $line" tagflow step --plan
done
expect 0 '^\{"title":' - \
  tagflow step "$loop" --feed n=2 --fetch Exit --plan --json
python3 -c 'import json, sys
frames = json.load(open(sys.argv[1]))["plans"][0]["frames"]
assert [frame["name"] for frame in frames] == ["root", "while"], frames
nodes = {node["name"]: node for node in frames[1]["nodes"]}
assert nodes["Less"]["kind"] == "kernel", nodes
assert nodes["Less"]["waits"]["first"] == 2, nodes
assert nodes["Switch"]["kind"] == "switch", nodes' "$work/stdout" ||
  complain "the plan is wrong" tagflow step --plan --json

# --- Runs that do not end well ------------------------------------------------
expect 0 'stopped after 50 steps' 'stopped after 50 steps' \
  tagflow step "$loop" --feed n=2000000000 --fetch Exit --limit 50
expect 1 '^error: .*assertion failed' 'assertion failed' \
  tagflow step "$sums" --feed 'x:0=[1,2]' --feed p:0=false --target check
expect 1 'is skipped: dead' 'predicate "p:0" was false' \
  tagflow step "$sums" --feed 'x:0=[1,2]' --feed p:0=false --fetch never:0
expect 1 'Placeholder' 'placeholder "x" was not fed' \
  tagflow step "$sums" --fetch y:0
expect 5 'error: Deadlock' 'Deadlock' \
  tagflow step "$here/graphs/lonely_recv.pbtxt" --fetch y:0

# --- Pages --------------------------------------------------------------------
expect 0 '^Exit = int32\[\] 3$' - \
  tagflow step "$loop" --feed n=3 --fetch Exit --html page.html
python3 - "$work/page.html" <<'EOF' || complain "the page is wrong" tagflow step
import html.parser, json, re, sys

text = open(sys.argv[1], encoding="utf-8").read()


class Page(html.parser.HTMLParser):
    ids, scripts, inside = set(), [], False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        assert "src" not in attrs and "href" not in attrs, attrs
        self.ids.add(attrs.get("id"))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


page = Page()
page.feed(text)
run = json.loads(page.scripts[0])
assert {f"n{i}" for i in range(len(run["nodes"]))} <= page.ids
assert {f"e{i}" for i in range(len(run["edges"]))} <= page.ids
assert "f1" in page.ids and len(page.scripts) == 2
assert not re.search(r"https?://(?!www\.w3\.org)", text)
EOF
expect 1 '' 'assertion failed' tagflow step "$sums" --feed 'x:0=[1,2]' \
  --feed p:0=false --target check --html failed.html
grep -q 'assertion failed' "$work/failed.html" ||
  complain "the page does not say what failed" tagflow step --html

# --- What cannot be -----------------------------------------------------------
expect 0 '^plan of .*device:CPU:0$' - \
  tagflow step "$loop" --feed n=3 --fetch Exit --html planned.html --plan
expect 1 '' 'no/such/page.html' \
  tagflow step "$loop" --feed n=1 --fetch Exit --html no/such/page.html
PATH_WITHOUT=$work/empty
mkdir "$PATH_WITHOUT"
ln -s "$(command -v env)" "$PATH_WITHOUT/env"
PATH_BEFORE=$PATH
PATH=$PATH_WITHOUT:$bin
cases=$((cases + 1))
(cd "$work" && "$bin/tagflow" step "$loop" --feed n=1 --fetch Exit \
  --html page2.html >stdout 2>stderr)
code=$?
PATH=$PATH_BEFORE
if [ "$code" -ne 1 ] || ! matches "$work/stderr" 'apt-get install graphviz'; then
  complain "without Graphviz: exit code $code" tagflow step --html
fi
expect 2 - 'nothing to run' tagflow step "$loop"
expect 2 - '--limit' tagflow step "$loop" --fetch Exit --limit 0
expect 2 - '--limit' tagflow step "$loop" --fetch Exit --limit many
expect 2 - '--colour' tagflow step "$loop" --fetch Exit --colour
expect 2 - 'no pass "magic"' tagflow step "$loop" --fetch Exit --passes magic
expect 3 - 'no.pb' tagflow step no.pb --fetch y:0
expect 1 - 'no node "Exti"' tagflow step "$loop" --feed n=1 --fetch Exti
expect 0 '--html' - tagflow step --help
finish
