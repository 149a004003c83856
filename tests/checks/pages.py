#!/usr/bin/env python3
"""CTest case check.pages: each page has a length that people read, its links
lead somewhere, and the README's figures of speed are those of docs/speed.md.
"""

import pathlib
import re
import sys

FOLDERS = ("graph", "autodiff", "devices", "actors", "net", "apps", "tests",
           "docs")
# The least and the most lines of a page. A generated page has any number.
LINES = {
    "README.md": (100, 220),
    "ARCHITECTURE.md": (100, 250),
    "docs/notes.md": None,
}
# Those of all other pages of a folder: a task each.
LINES_OF_DOCS = (60, 250)
LINES_OF_FOLDERS = (20, 220)
MOST_COLUMNS = 80

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
MARK = re.compile(r"[^\w\- ]")


def limits(name):
    if name in LINES:
        return LINES[name]
    return LINES_OF_DOCS if name.startswith("docs/") else LINES_OF_FOLDERS


def prose(text):
    """The lines outside of blocks of code, and their numbers."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif not in_block:
            yield number, line


def anchors(text):
    """What links within a page may name: its headings, as GitHub does it."""
    return {MARK.sub("", line.lstrip("# ").lower()).strip().replace(" ", "-")
            for _, line in prose(text) if line.startswith("#")}


def errors(top, page):
    name = str(page.relative_to(top))
    text = page.read_text(encoding="utf-8")
    length, limit = len(text.splitlines()), limits(name)
    if limit and not limit[0] <= length <= limit[1]:
        yield f"{name}: {length} lines, not {limit[0]} to {limit[1]}"
    for number, line in prose(text):
        # A row of a table, and a link, cannot be wrapped.
        if (limit and len(line) > MOST_COLUMNS and "|" not in line
                and "](" not in line):
            yield f"{name}:{number}: {len(line)} columns"
        for target in LINK.findall(line):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not there.exists():
                yield f"{name}:{number}: there is no {target}"
            elif anchor and anchor not in anchors(
                    there.read_text(encoding="utf-8")):
                yield f"{name}:{number}: no heading for {target}"


def rows(page):
    """The rows of figures in a page's tables: the cells, by the first one."""
    found = {}
    for _, line in prose(page.read_text(encoding="utf-8")):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and any(
                re.fullmatch(r"[\d.]+", cell) for cell in cells[1:]):
            found[cells[0]] = cells[1:]
    return found


def figures(top):
    """Errors in the README's table of speed, a part of docs/speed.md's."""
    ours, all_of_them = rows(top / "README.md"), rows(top / "docs/speed.md")
    if not ours:
        yield "README.md has no figures of speed"
    for workload, cells in ours.items():
        given = all_of_them.get(workload, [])
        for cell in cells:
            if re.search(r"\d", cell) and cell not in given:
                yield ("README.md: docs/speed.md does not say: "
                       f"{workload}: {cell}")


def main():
    top = pathlib.Path(__file__).resolve().parents[2]
    pages = sorted([*top.glob("*.md"),
                    *(page for folder in FOLDERS
                      for page in (top / folder).rglob("*.md"))])
    wrong = [error for page in pages for error in errors(top, page)]
    names = {str(page.relative_to(top)) for page in pages}
    wrong += [f"there is no page {name}" for name in LINES.keys() - names]
    wrong += figures(top)
    for error in wrong:
        print(error)
    print(f"{len(pages)} pages, {len(wrong)} errors")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
