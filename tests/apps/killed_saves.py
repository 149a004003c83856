"""Kills trainings with SIGKILL while they save: run by
killed_saves_slow_test.sh.

usage: killed_saves.py BIN_DIR [KILLS]

The same command is started again and again, saves after every step, and is
killed at a random moment. After each kill the newest checkpoint is read: all
that it has must be of one step, and never of an earlier one than the last time.
What the steps printed must be what a run prints that nobody kills.
"""
import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ELEMENTS = 1 << 16


def node(name, op, inputs=(), **attrs):
    text = "".join(f' input: "{i}"' for i in inputs)
    text += "".join(f' attr {{ key: "{key}" value {{ {value} }} }}'
                    for key, value in attrs.items())
    return f'node {{ name: "{name}" op: "{op}"{text} }}\n'


FLOAT, INT = "type: DT_FLOAT", "type: DT_INT32"


def constant(name, dtype, shape, value):
    tensor = f"dtype: {dtype} tensor_shape {{ {shape} }} {value}"
    return node(name, "Const", dtype="type: " + dtype,
                value=f"tensor {{ {tensor} }}")


def graph():
    """Two large variables and a small one, to which each step adds one, and
    "noise". "least" and "most" are over all of them."""
    text = (constant("size", "DT_INT32", "dim { size: 1 }",
                     f"int_val: {ELEMENTS}") +
            constant("one", "DT_FLOAT", "", "float_val: 1") +
            constant("none", "DT_FLOAT", "", "float_val: 0") +
            constant("dims", "DT_INT32", "dim { size: 1 }", "int_val: 0") +
            constant("scalar", "DT_INT32", "dim { size: 0 }", "") +
            node("ones", "Fill", ["size", "one"], T=FLOAT) +
            node("zeros", "Fill", ["size", "none"], T=FLOAT))
    large = f"shape {{ dim {{ size: {ELEMENTS} }} }}"
    inits, trains, bounds = [], [], {"Min": [], "Max": []}
    for name, shape, first, step in (("w", large, "zeros", "ones"),
                                     ("w/slot", large, "zeros", "ones"),
                                     ("count", "shape {}", "none", "one")):
        text += node(name, "VarHandleOp", dtype=FLOAT, shape=shape)
        text += node(name + "/init", "AssignVariableOp", [name, first],
                     dtype=FLOAT)
        text += node(name + "/add", "AssignAddVariableOp", [name, step],
                     dtype=FLOAT)
        text += node(name + "/read", "ReadVariableOp", [name], dtype=FLOAT)
        inits.append(f"^{name}/init")
        trains.append(f"^{name}/add")
        if name == "count":
            continue
        for op, names in bounds.items():
            text += node(f"{name}/{op}", op, [name + "/read", "dims"], T=FLOAT)
            names.append(f"{name}/{op}")
    text += node("init", "NoOp", inits) + node("train", "NoOp", trains)
    for name, op, bound in (("least", "Minimum", "Min"),
                            ("most", "Maximum", "Max")):
        text += node(name + "/w", op, bounds[bound], T=FLOAT)
        text += node(name, op, [name + "/w", "count/read"], T=FLOAT)
    return text + node("noise", "RandomUniform", ["scalar"], T=INT,
                       dtype=FLOAT)


def lines_of(text):
    """The steps of whole lines: a process may be killed in the middle."""
    steps = {}
    for line in text.split("\n")[:-1]:
        step = json.loads(line)
        steps[step["step"]] = step["fetches"]
    return steps


def check_agree(known, more):
    for step, fetches in more.items():
        if known.setdefault(step, fetches) != fetches:
            sys.exit(f"step {step} was {known[step]}, and is {fetches}")


def check_limit(tagflow, folder):
    """A disk that is full for a while: it is said, the training goes on, the
    last checkpoint stays, and a later one is saved."""
    saves = folder / "limited"
    process = subprocess.Popen(
        [tagflow, "run", folder / "model.pbtxt", "--target", "train", "--init",
         "init", "--steps", "1000000000", "--save", saves, "--save-every", "1",
         "--keep", "200"],  # while it goes on, the newest is read
        stderr=subprocess.PIPE, text=True,
        # Python ignores SIGXFSZ, and so does what it starts.
        restore_signals=False)

    def limit_files(size):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE,
                         (size, resource.RLIM_INFINITY))

    def wait_for_more_than(count):
        begin = time.monotonic()
        while (not list(saves.glob("*.index")) or
               count_in(tagflow, folder, saves) <= count):
            if time.monotonic() - begin > 60 or process.poll() is not None:
                sys.exit("nothing is saved any more")

    wait_for_more_than(3)
    limit_files(1000)
    said = process.stderr.readline()
    if "warning: [--save]" not in said or "File too large" not in said:
        sys.exit(f"it says {said}")
    held = count_in(tagflow, folder, saves)
    limit_files(resource.RLIM_INFINITY)
    wait_for_more_than(held)
    process.kill()
    process.wait()


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def count_in(tagflow, folder, saves):
    """The step that all variables of the newest checkpoint are of."""
    out = json.loads(run(
        [tagflow, "run", folder / "model.pbtxt", "--restore", saves, "--fetch",
         "least", "--fetch", "most", "--fetch", "count/read", "--json"]))
    least, most, count = (f["value"] for f in out["fetches"].values())
    if not least == most == count:
        sys.exit(f"the variables are from {least} to {most}, not {count}")
    return int(count)


def main():
    tagflow = pathlib.Path(sys.argv[1]) / "tagflow"
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    moments = random.Random(11)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.pbtxt").write_text(graph())
        saves = folder / "saves"
        train = [tagflow, "run", folder / "model.pbtxt", "--target", "train",
                 "--fetch", "noise", "--init", "init", "--json"]

        # Where all begin: the seed of random numbers is drawn once.
        first = folder / "first"
        seen = lines_of(run([*train, "--steps", "1", "--save", first,
                             "--keep", "0"]))
        saves.mkdir()
        for file in first.glob("model.ckpt-0.*"):
            shutil.copy(file, saves)
        last = halves = 0
        for kill in range(kills):
            with open(folder / "stdout", "w+") as out:
                process = subprocess.Popen(
                    [*train, "--steps", "1000000000", "--save", saves,
                     "--save-every", "1", "--keep", str(moments.choice([1, 3]))],
                    stdout=out, stderr=subprocess.DEVNULL)
                begin = time.monotonic()
                # Some are killed before their first step.
                wanted = 1 if kill % 10 == 0 else moments.randrange(4)
                while (wanted > 0 and process.poll() is None and
                       (folder / "stdout").read_text().count("\n") < wanted):
                    if time.monotonic() - begin > 60:
                        sys.exit("there is no progress")
                time.sleep(moments.random() * 0.02)
                if process.poll() is not None:
                    sys.exit(f"it ended by itself: {process.returncode}")
                process.kill()
                process.wait()
            check_agree(seen, lines_of((folder / "stdout").read_text()))
            halves += any(".tmp-" in file.name for file in saves.iterdir())
            count = count_in(tagflow, folder, saves)
            if count < last:
                sys.exit(f"after kill {kill}: {count}, {last} before")
            last = count
        if last < kills / 20:
            sys.exit(f"{kills} kills left {last} steps")

        total = last + 5
        check_agree(seen, lines_of(run(
            [*train, "--steps", str(total), "--save", saves])))
        if sorted(seen)[:total] != list(range(1, total + 1)):
            sys.exit("a step was not printed")
        whole = lines_of(run([*train, "--restore", first / "model.ckpt-0",
                              "--steps", str(total)]))
        if len(whole) != total:
            sys.exit(f"{len(whole)} steps of {total}")
        check_agree(seen, whole)
        # Nothing is left of killed saves, but for data without an index, which
        # are written over when their step is saved again.
        left = [file.name for file in saves.iterdir() if ".tmp-" in file.name]
        if left:
            sys.exit(f"there is still {left}")
        check_limit(tagflow, folder)
        print(f"{kills} kills, {halves} in the middle of a file, {last} steps")


if __name__ == "__main__":
    main()
