#!/usr/bin/env python3
"""Makes an archive of some of what record_random_ops.py recorded.

Usage: select_random_ops.py TAGFLOW ARCHIVE.tar.xz FOLDER...

Taken are the smallest cases that together show, for every op: each code that
it fails with, each type of its first output, and cases with something empty,
with a scalar, of more than four dimensions, fed and of constants. Left out are
large cases, those that need a certain amount of memory, and those in which the
program TAGFLOW differs: look at these first, one by one.
"""

import ast
import json
import pathlib
import subprocess
import sys
import tarfile

LARGEST = 16 << 10  # bytes of a case


def shape_and_type(path):
    """Of a tensor in a file of numpy's or ours."""
    if path.suffix == ".json":
        return tuple(json.loads(path.read_text())["shape"]), "string"
    data = path.read_bytes()
    size = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:10 + size].decode("latin1"))
    return tuple(header["shape"]), str(header["descr"])


def aspects(folder, case):
    """What a case shows of its ops."""
    run = case["runs"][0]
    feeds = [shape_and_type(folder / file) for file in run["feeds"].values()]
    results = [shape_and_type(folder / file) for file in run.get("expect", [])]
    yield "fed" if feeds else "constants"
    if "error" in run:
        yield run["error"]["code"]
    if results:
        yield "of " + results[0][1]
    for shape, _ in feeds + results:
        if 0 in shape:
            yield "empty"
        if not shape:
            yield "scalar"
        if len(shape) > 4:
            yield "many dimensions"


def candidates(root):
    """(size, folder, case) of what is small and fails by no limit."""
    for folder in sorted(root.iterdir()):
        if not folder.is_dir():
            continue
        case = json.loads((folder / "case.json").read_text())
        size = sum(file.stat().st_size for file in folder.iterdir())
        error = case["runs"][0].get("error", {}).get("code", "")
        if size <= LARGEST and error != "ResourceExhaustedError":
            yield size, folder, case


def passed(tagflow, folders):
    """The names of the cases in which it does as TensorFlow."""
    text = subprocess.run([tagflow, "conform", "--json", *folders],
                          stdout=subprocess.PIPE, check=False).stdout
    verdicts = json.loads(text.splitlines()[0])
    return {case["name"] for case in verdicts["cases"]
            if case["outcome"] == "passed"}


def selected(cases):
    """The folders of the cases to take."""
    seen = set()
    for _, folder, case in sorted(cases, key=lambda c: (c[0], c[1].name)):
        label = folder.name.rsplit("_", 2)[0]
        shown = {(op, aspect) for op in {label, *case["ops"]}
                 for aspect in aspects(folder, case)}
        if not shown <= seen:
            seen |= shown
            yield folder


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tagflow, archive, *roots = sys.argv[1:]
    cases = [c for root in roots for c in candidates(pathlib.Path(root))]
    names = passed(tagflow, [folder for _, folder, _ in cases])
    cases = [c for c in cases if c[1].name in names]
    taken = sorted(selected(cases), key=lambda folder: folder.name)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for folder in taken:
            for file in sorted(folder.iterdir()):
                entry = tarfile.TarInfo(f"{folder.name}/{file.name}")
                entry.size = file.stat().st_size
                with open(file, "rb") as data:
                    tar.addfile(entry, data)
    size = pathlib.Path(archive).stat().st_size
    print(f"{len(taken)} of {len(cases)} cases, {size} bytes")


if __name__ == "__main__":
    main()
