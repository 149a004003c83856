#!/usr/bin/env python3
"""CTest case check.includes: a folder includes only the folders below it, in
the order in which a graph passes through them (ARCHITECTURE.md says why), and
every include of ours is written from the top: "graph/tensor.h".
"""

import pathlib
import re
import sys

# Folder -> what it may include. apps/ and tests/ may include everything.
ALLOWED = {
    "graph": {"graph"},
    "autodiff": {"graph", "autodiff"},
    "devices": {"graph", "devices"},
    "actors": {"graph", "devices", "actors"},
    "net": {"graph", "devices", "actors", "net"},
}
OURS = set(ALLOWED) | {"apps", "tests"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def complaint(folder, file, quote, path):
    """What is wrong with one include in `folder`, or None."""
    top = path.split("/")[0]
    if top in OURS and "/" in path:
        allowed = ALLOWED.get(folder, OURS)
        if top not in allowed:
            return f"{folder}/ must not include {path}"
        if quote == "<":
            return f'write "{path}", in quotes'
    elif quote == '"' and (file.parent / path).exists():
        return f"write the include of {path} from the top"
    return None


def main():
    top = pathlib.Path(__file__).resolve().parents[2]
    checked = bad = 0
    for folder in sorted(OURS):
        for file in sorted((top / folder).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            checked += 1
            text = file.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                wrong = complaint(folder, file, *match.groups())
                if wrong:
                    print(f"{file.relative_to(top)}:{number}: {wrong}")
                    bad += 1
    print(f"{checked} files, {bad} forbidden includes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
