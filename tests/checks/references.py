#!/usr/bin/env python3
"""CTest case check.references: references in comments and pages are valid. Each
Note [Name] that is cited is defined exactly once; each path of a file or folder
of ours, in a comment or on a page, exists, or is a folder that a build leaves,
which .gitignore names. A comment may omit the suffix of a file; a page, between
backticks, does not.
"""

import pathlib
import re
import sys

FOLDERS = ("graph", "autodiff", "devices", "actors", "net", "apps", "python",
           "tests", "cmake", "docs")
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake"}

# The heading of a note is a line of its own, in the first comment about it.
HEADING = re.compile(r"^\s*(?://|#)\s*Note (\[[^\]]+\])\s*$")
# One note, or several in a row.
NAMED = re.compile(r"\bNotes?\s+(\[[^\]]+\](?:(?:,\s*|\s+and\s+)\[[^\]]+\])*)")
# Not the name of a CTest case, nor a pattern, as array_*.cpp.
PATH = re.compile(rf"(?<![\w./-])(?<!CTest case )(?:{'|'.join(FOLDERS)})"
                  r"/[\w./-]*\w(?:/|\b)(?![*<{])")
# Placeholders for names are in capitals.
ANY = re.compile(r"/[A-Z]{3,}\b")
COMMENT = re.compile(r"//(.*)$|^\s*#(?!include|define|if|el|endif|pragma)(.*)$")


def files(top):
    """Pages and sources that we wrote."""
    for path in sorted(top.glob("*.md")):
        yield path
    for folder in FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            if path.suffix in SOURCES | SCRIPTS | {".md"}:
                yield path


def prose(path):
    """The comments of a source, or the page outside of its blocks of code, as
    one text; and the number of the line at each of its offsets."""
    text, lines, in_block = [], [], False
    for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix == ".md":
            if line.lstrip().startswith("```"):
                in_block = not in_block
                continue
            words = "" if in_block else line
        else:
            match = COMMENT.search(line)
            words = (match.group(1) or match.group(2) or "") if match else ""
        text.append(words + " ")
        lines += [number] * (len(words) + 1)
    return "".join(text), lines


def exists(top, path, is_whole):
    """Whether a file or folder of that name exists, or, if the name need not be
    the whole one, a file with a suffix."""
    target = top / path.rstrip("/.")
    return target.exists() or (
        not is_whole and any(target.parent.glob(target.name + ".*")))


def main():
    """Prints all errors; the exit status is 1 if there are any."""
    top = pathlib.Path(__file__).resolve().parents[2]
    headings, named, wrong = {}, [], []
    left = {line.strip("/") for line in
            (top / ".gitignore").read_text(encoding="utf-8").splitlines()
            if line.startswith("/")}
    for path in files(top):
        place = path.relative_to(top)
        for number, line in enumerate(
                path.read_text(encoding="utf-8").splitlines(), 1):
            if match := HEADING.match(line):
                headings.setdefault(match.group(1), []).append(
                    f"{place}:{number}")
        text, lines = prose(path)
        for match in NAMED.finditer(text):
            where = f"{place}:{lines[match.start()]}"
            for note in re.findall(r"\[[^\]]+\]", match.group(1)):
                named.append((re.sub(r"\s+", " ", note), where))
        for match in PATH.finditer(text):
            is_whole = (path.suffix == ".md" and
                        text[match.start() - 1:match.start()] == "`" and
                        text[match.end():match.end() + 1] == "`")
            if not (ANY.search(match.group()) or
                    match.group().rstrip("/.") in left or
                    exists(top, match.group(), is_whole)):
                wrong.append(f"{place}:{lines[match.start()]}: there is no "
                             f"{match.group()}")
    for note, places in headings.items():
        if len(places) > 1:
            wrong.append(f"{places[1]}: Note {note} is also at {places[0]}")
    for note, where in named:
        if note not in headings:
            wrong.append(f"{where}: there is no Note {note}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
