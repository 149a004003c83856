#!/usr/bin/env python3
"""CTest case check.includes: a folder includes only the folders below it, in
the order in which a graph passes through them (ARCHITECTURE.md says why), and
every include of ours is written from the top: "graph/tensor.h". All headers
that an installed one includes are installed: see cmake/public_headers.txt.
"""

import pathlib
import re
import sys

# Folder -> what it may include. apps/ and tests/ may include all folders.
ALLOWED = {
    "graph": {"graph"},
    "autodiff": {"graph", "autodiff"},
    "devices": {"graph", "devices"},
    "actors": {"graph", "devices", "actors"},
    "net": {"graph", "devices", "actors", "net"},
}
TOP = pathlib.Path(__file__).resolve().parents[2]
# The families of ops, whose kernels have a room each.
FAMILIES = [line.split()[0] for line in
            (TOP / "cmake/families.txt").read_text().splitlines()
            if line and not line.startswith("#")]
# Folder -> its rooms, from the lowest: a room includes the rooms below it and
# the files of the folder itself, which include no room. The command includes
# the benchmarks, and one of these measures k-means.
ROOMS = {
    "graph": ["proto", "ops", "analysis", "passes", "functions", "file",
              "builder", "placement", "partition"],
    "autodiff": ["rules", "train"],
    "devices": ["media", "state", "files", "stream", "cuda", "no_cuda",
                "kernels",
                *(f"kernels/{family}" for family in FAMILIES)],
    "actors": ["plan", "watch", "runtime", "diagnosis", "session",
               "checkpoint"],
    "net": ["proto", "proto/serving", "wire", "protocol", "link", "transfer",
            "control", "worker", "master", "service", "tensorflow", "metrics",
            "config", "serving", "grpc", "no_grpc"],
    "apps": ["shared/io", "shared/program", "shared/runs", "shared/draw", "shared/live",
             "shared/training", "examples/kmeans", "examples/train_images",
             "examples/train_jpegs", "examples/fortunes", "examples/g2p", "examples/ode", "examples",
             "bench", "tagflow/model", "tagflow/checkpoint",
             "tagflow/conform", "tagflow/placement", "tagflow/stepper",
             "chaos", "tagflow"],
}
# What libraries call -> the only rooms that include their headers, tests apart.
KEPT = {
    re.compile("caf/"): (["actors/runtime", "net/control"], "CAF"),
    re.compile("boost/asio|openssl/"): (["net/link"], "Boost.Asio and OpenSSL"),
    re.compile("(png|jpeglib|gif_lib)\\.h|webp/"): (
        ["devices/media", "apps/shared/io"], "libraries of pictures"),
    re.compile("boost/beast"): (["net/link"], "Boost.Beast"),
    re.compile(r"grpcpp/|grpc/|.*\.grpc\.pb\.h"): (["net/grpc"], "gRPC"),
}
OURS = set(ALLOWED) | {"apps", "tests"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
PUBLIC = "cmake/public_headers.txt"
APART = "tests/consumer"  # projects of their own
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def height(parts):
    """The index of a path's room in the order; -1 for the folder itself."""
    top, *folders, _ = parts
    room = "/".join(folders)
    if not room:
        return -1
    if room not in ROOMS[top]:
        sys.exit(f"{top}/{room}/ is not a room: add it to ROOMS")
    return ROOMS[top].index(room)


def complaint(folder, file, quote, path):
    """The error of one include in `folder`, or None. `file` and `path`
    are relative to the top."""
    parts = path.split("/")
    top = parts[0]
    if top == folder and top in ROOMS and height(parts) > height(file.parts):
        return f"{file.parent}/ must not include {path}"
    for library, (rooms, name) in KEPT.items():
        if (library.match(path) and folder != "tests"
                and str(file.parent) not in rooms):
            return f"only {'/ and '.join(rooms)}/ includes {name}"
    if top in OURS and "/" in path:
        allowed = ALLOWED.get(folder, OURS)
        if top not in allowed:
            return f"{folder}/ must not include {path}"
        if quote == "<":
            return f'write "{path}", in quotes'
    elif quote == '"' and (TOP / file.parent / path).exists():
        return f"write the include of {path} from the top"
    return None


def ours_in(file):
    """The headers of ours that a file includes."""
    lines = file.read_text(encoding="utf-8").splitlines()
    matches = filter(None, map(INCLUDE.match, lines))
    paths = (match.group(2) for match in matches)
    return [path for path in paths if path.split("/")[0] in OURS]


def public_complaints():
    """The errors of the list of public headers, line by line."""
    listed = {}  # header -> whether it is a detail
    for line in (TOP / PUBLIC).read_text(encoding="utf-8").splitlines():
        header, _, mark = line.partition(" ")
        if not line or header == "#":
            continue
        if mark not in ("", "detail"):
            yield f'{header}: "{mark}" is not "detail"'
        if header in listed:
            yield f"{header} is listed twice"
        listed[header] = mark == "detail"
    if not listed:
        yield "no header is listed"
    needed = set()
    for header in listed:
        if not (TOP / header).is_file():
            yield f"{header} is not there"
            continue
        for path in ours_in(TOP / header):
            needed.add(path)
            if path not in listed:
                yield f"{header} includes {path}, which is internal"
    for header, is_detail in listed.items():
        if is_detail and header not in needed:
            yield f"{header} is a detail that no public header needs"


def main():
    checked = bad = 0
    for folder in sorted(OURS):
        for file in sorted((TOP / folder).rglob("*")):
            if file.suffix not in SOURCES or TOP / APART in file.parents:
                continue
            checked += 1
            text = file.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                wrong = complaint(folder, file.relative_to(TOP),
                                  *match.groups())
                if wrong:
                    print(f"{file.relative_to(TOP)}:{number}: {wrong}")
                    bad += 1
    for wrong in public_complaints():
        print(f"{PUBLIC}: {wrong}")
        bad += 1
    print(f"{checked} files, {bad} forbidden includes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
