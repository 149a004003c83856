#!/usr/bin/env python3
"""CTest case check.families: a family of ops has one name in all trees. Each
file and folder of these trees begins with the name of a family, and one
registrar is where cmake/families.txt says. Which ops a family has is for
tests/autodiff/families_test.cpp, which asks the registries.
"""

import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]

# Tree -> files that all families share.
SHARED = {
    "graph/ops": {"families.h", "global.cpp", "index_values.cpp",
                  "index_values.h", "shape_arithmetic.cpp",
                  "shape_arithmetic.h", "type_sets.h"},
    "autodiff/rules": {"families.h", "rule_table.cpp", "arithmetic.h",
                       "attributes.h", "broadcast.cpp", "broadcast.h",
                       "expression.cpp", "expression.h", "forward.h",
                       "no_gradient.h"},
    "tests/graph/ops": {"infer.h", "updates.h", "definitions_test.cpp"},
    "tests/autodiff/rules": {"floats.h", "functions.h", "squares.h"},
}
# Tree -> folders of families; what lies beside the folders, they share.
FOLDERS = ("devices/kernels", "tests/devices/kernels")
REGISTRARS = {
    "graph/ops": ("{0}.cpp", "void register_{0}_ops("),
    "devices/kernels": ("{0}/register.cpp", "void register_{0}_kernels("),
    "autodiff/rules": ("{0}.cpp", "void add_{0}_rules("),
}


def families():
    lines = (TOP / "cmake/families.txt").read_text(encoding="utf-8")
    return [line.split()[0] for line in lines.splitlines()
            if line and not line.startswith("#")]


def family_of(name, names):
    """The family by which a file's name begins, or None."""
    fitting = [family for family in names
               if name == family or name.startswith(family + "_")]
    return max(fitting, key=len, default=None)


def complaints():
    names = families()
    if len(set(names)) != len(names):
        yield "cmake/families.txt: a family is listed twice"
    used = set()
    for tree, shared in SHARED.items():
        for file in sorted((TOP / tree).iterdir()):
            stem = file.name.split(".")[0]
            if file.name in shared or file.name == "README.md":
                continue
            family = family_of(stem, names)
            if family is None:
                yield f"{tree}/{file.name}: no family begins like this"
            used.add(family)
    for tree in FOLDERS:
        for folder in sorted((TOP / tree).iterdir()):
            if folder.is_dir() and folder.name not in names:
                yield f"{tree}/{folder.name}: is not a family"
            used.add(folder.name)
    for header in sorted((TOP / "graph/builder").glob("ops_*.h")):
        if header.stem.removeprefix("ops_") not in names:
            yield f"graph/builder/{header.name}: is not a family"
    for family in names:
        if family not in used:
            yield f"cmake/families.txt: {family} has no file"
        for tree, (file, registrar) in REGISTRARS.items():
            path = TOP / tree / file.format(family)
            parts = list((TOP / tree).glob(f"{family}*"))
            if parts and not path.is_file():
                yield f"{tree}/{file.format(family)} is missing"
            elif path.is_file() and registrar.format(family) not in \
                    path.read_text(encoding="utf-8"):
                yield f"{path.relative_to(TOP)} lacks " + \
                    registrar.format(family).removeprefix("void ") + ")"


def main():
    bad = list(complaints())
    for line in bad:
        print(line)
    print(f"{len(families())} families, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
