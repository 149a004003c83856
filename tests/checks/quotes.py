#!/usr/bin/env python3
"""CTest case check.quotes: the C++ code on our pages is compiled, since each
block of it is part of a source, except for the indentation. A line of "// ..."
stands for code that a page omits.
"""

import pathlib
import sys

FOLDERS = ("graph", "autodiff", "devices", "actors", "net", "apps", "tests")
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
LEFT_OUT = "// ..."


def lines_of(text):
    """The non-empty lines of a text, without indentation."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def blocks(page):
    """(number of the first line, lines) of each block of C++."""
    found, first, block = [], 0, None
    text = page.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if block is None and line.strip() == "```cpp":
            first, block = number + 1, []
        elif block is not None and line.strip() == "```":
            found.append((first, lines_of("\n".join(block))))
            block = None
        elif block is not None:
            block.append(line)
    if block is not None:
        sys.exit(f"{page}:{first}: the block has no end")
    return found


def parts(block):
    """The parts of a block between its lines of "// ..."."""
    part = []
    for line in block:
        if line == LEFT_OUT:
            yield part
            part = []
        else:
            part.append(line)
    yield part


def main():
    top = pathlib.Path(__file__).resolve().parents[2]
    sources = ["\n".join(["", *lines_of(path.read_text(encoding="utf-8")), ""])
               for folder in FOLDERS for path in (top / folder).rglob("*")
               if path.suffix in SOURCES]
    pages = [*top.glob("*.md"), *top.glob("docs/*.md"),
             *(page for folder in FOLDERS
               for page in (top / folder).rglob("*.md"))]
    checked = bad = 0
    for page in sorted(pages):
        for number, block in blocks(page):
            checked += 1
            for part in filter(None, parts(block)):
                quote = "\n".join(["", *part, ""])
                if not any(quote in source for source in sources):
                    print(f"{page.relative_to(top)}:{number}: no source has "
                          f"this: {part[0]}")
                    bad += 1
    print(f"{checked} blocks, {bad} that no source has")
    return 1 if bad or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
