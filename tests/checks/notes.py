#!/usr/bin/env python3
"""CTest case check.notes: docs/notes.md lists every Note of the sources, by
folder. With --write it is written.
"""

import pathlib
import re
import sys

from references import FOLDERS, HEADING, SCRIPTS, SOURCES

TITLE = """# Notes

What many places of the sources rely on is explained once, in a comment below a
line with the word Note and a title in brackets, and is cited by that title.
This page lists all of them by folder. `tests/checks/notes.py --write` makes it.
"""
COMMENT = re.compile(r"^\s*(?://|#) ?")
UNDERLINE = " -=~"


def first_sentence(lines):
    """The first sentence of a comment, if it begins with one that stands by
    itself: not with a list, nor with what a list follows.
    """
    text = []
    for line in lines:
        words = COMMENT.sub("", line)
        if not COMMENT.match(line) or (text and not words.strip(UNDERLINE)):
            break
        if words.startswith("  "):
            break
        if words.strip(UNDERLINE):
            text.append(words.strip())
    match = re.match(r"[A-Z][^.:]+?[.](?=\s|$)", " ".join(text))
    return match.group().replace("<", "\\<") if match else ""


def notes(top):
    """(file, title, first sentence) of each Note, folder by folder."""
    for name in FOLDERS:
        paths = (top / name).rglob("*")
        for path in sorted(paths, key=lambda path: (path.parent, path.name)):
            if path.suffix not in SOURCES | SCRIPTS:
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                if match := HEADING.match(line):
                    yield (path.relative_to(top), match.group(1)[1:-1],
                           first_sentence(lines[number:]))


def page(top):
    text, last = TITLE, None
    for file, title, sentence in notes(top):
        if file.parent != last:
            text += f"\n## {file.parent}/\n\n"
            last = file.parent
        text += f"- [{title}](../{file}) in `{file.name}`"
        text += f": {sentence}\n" if sentence else "\n"
    return text


def main():
    top = pathlib.Path(__file__).resolve().parents[2]
    document = top / "docs" / "notes.md"
    now = page(top)
    if "--write" in sys.argv[1:]:
        document.write_text(now, encoding="utf-8")
        return 0
    was = document.read_text(encoding="utf-8") if document.exists() else ""
    if was == now:
        return 0
    had, has = was.splitlines(), now.splitlines()
    for line in (line for line in has if line not in had):
        print(f"is missing: {line}")
    for line in (line for line in had if line not in has):
        print(f"is not so any more: {line}")
    print("docs/notes.md is not current: tests/checks/notes.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
