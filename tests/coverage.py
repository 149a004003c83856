#!/usr/bin/env python3
"""Prints the share of the lines below some folders that were run, from the
counters of a build with --coverage; coverage.sh makes that build.

usage: coverage.py BUILD_DIR [--missing] FOLDER...
"""

import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WANTED = 90.0  # per cent, of each FOLDER
TOP = pathlib.Path(__file__).resolve().parents[1]


def lines_of(notes):
    """(file, line, count) for the lines that were compiled to an object."""
    with tempfile.TemporaryDirectory() as where:
        # Without counters (.gcda) no code of the object was run.
        subprocess.run(
            ["gcov", "--json-format", str(notes)],
            cwd=where, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        found = []
        for report in pathlib.Path(where).glob("*.gcov.json.gz"):
            with gzip.open(report, "rt", encoding="utf-8") as text:
                data = json.load(text)
            base = pathlib.Path(data["current_working_directory"])
            for file in data["files"]:
                path = (base / file["file"]).resolve()
                if path.is_relative_to(TOP):
                    name = path.relative_to(TOP).as_posix()
                    found += [(name, line["line_number"], line["count"])
                              for line in file["lines"]]
        return found


def count(build, folders):
    """File -> line -> how often it was run, for the files of the folders."""
    notes = sorted(build.rglob("*.gcno"))
    counts = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lines_of, notes):
            for file, line, times in lines:
                if file.split("/")[0] in folders:
                    counts[file][line] += times
    return counts


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(f"{a}-{b}" if a < b else str(a) for a, b in parts)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    show_missing = "--missing" in sys.argv
    folders = [arg for arg in sys.argv[2:] if not arg.startswith("-")]
    counts = count(build, folders)

    table = collections.defaultdict(lambda: [0, 0])  # folder -> run, all
    for file, lines in sorted(counts.items()):
        missing = sorted(n for n, times in lines.items() if times == 0)
        # A folder's row counts the files below it.
        for folder in pathlib.PurePosixPath(file).parents:
            table[folder.as_posix()][0] += len(lines) - len(missing)
            table[folder.as_posix()][1] += len(lines)
        if show_missing and missing:
            print(f"{file}: {ranges(missing)}")
    table.pop(".", None)

    low = False
    print(f"{'folder':<24}{'lines':>8}{'run':>8}{'share':>9}")
    for folder, (run, total) in sorted(table.items()):
        share = 100.0 * run / total
        print(f"{folder:<24}{total:>8}{run:>8}{share:>7.1f} %")
        low = low or (folder in folders and share < WANTED)
    if low or not set(folders) <= set(table):
        print(f"less than {WANTED:.0f} % of the lines were run")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
