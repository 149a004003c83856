"""Checks the code and outputs in README.md, ARCHITECTURE.md and docs/*.md;
readme_test.sh runs this.

usage: readme.py SOURCE_DIR BIN_DIR [--update]

The block after a line "<!-- file: PATH -->" equals the file; after
"<!-- output: PROGRAM -->" it equals what the program prints; after
"<!-- run -->" it is lines "$ COMMAND", each followed by all it prints, on
stderr too. With --update the blocks are rewritten instead. After
"<!-- run by: TEST -->" it is such lines, too: the test, a script of ours, runs
them, and has each line that they print. A block of the language "console" has
one of these lines before it.
"""
import os
import pathlib
import re
import subprocess
import sys

MARKED = re.compile(
    r"<!-- (?P<kind>file|output|run)(?:: (?P<what>\S+))? -->\n"
    r"```(?P<language>\w*)\n(?P<text>.*?)```\n", re.S)
RUN_BY = re.compile(
    r"<!-- run by: (?P<test>\S+) -->\n```console\n(?P<text>.*?)```\n", re.S)
BARE = re.compile(r"(?<! -->\n)^```console\n(?P<first>.*)$", re.M)
# Pages of prose and figures alone, those whose blocks tests run, and those
# about Python, whose code tests/python/pages_test.py runs. All others have a
# block that is run here.
WITHOUT_BLOCKS = {"ARCHITECTURE.md", "docs/attacks.md", "docs/cluster.md",
                  "docs/cluster_checkpoints.md", "docs/faults.md",
                  "docs/limits.md", "docs/machines.md",
                  "docs/master_service.md", "docs/notes.md",
                  "docs/python.md", "docs/python_building.md",
                  "docs/python_training.md", "docs/rules.md",
                  "docs/serving.md", "docs/speed.md", "docs/state.md",
                  "docs/input.md", "docs/steps.md", "docs/survival.md",
                  "docs/tensorflow_clients.md", "docs/tls.md", "docs/wire.md"}


def output_of(command, root, bin_dir):
    path = os.pathsep.join([str(bin_dir), os.environ["PATH"]])
    result = subprocess.run(
        command, shell=True, cwd=root, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.stdout


def expected(match, root, bin_dir):
    kind, what = match["kind"], match["what"]
    if kind == "file":
        return (root / what).read_text()
    if kind == "output":
        return output_of(str(bin_dir / what), root, bin_dir)
    commands = re.findall(r"^\$ (.*)\n", match["text"], re.M)
    return "".join(
        f"$ {c}\n{output_of(c, root, bin_dir)}" for c in commands)


def missing_in_tests(name, text, root):
    """The lines of output that the test named for them does not have."""
    for match in RUN_BY.finditer(text):
        test = root / match["test"]
        script = test.read_text() if test.is_file() else ""
        for line in match["text"].splitlines():
            if not line.startswith("$ ") and line not in script:
                yield f"{name}: {match['test']} does not have: {line}"


def check_document(name, root, bin_dir, update):
    """The errors of a document, and the number of its blocks."""
    document = root / name
    text = document.read_text()
    wrong = []

    def check(match):
        want = expected(match, root, bin_dir)
        if want != match["text"]:
            wrong.append(f"{match['kind']} {match['what'] or ''}\n"
                         f"--- {name}\n{match['text']}--- now\n{want}")
        what = f": {match['what']}" if match["what"] else ""
        return (f"<!-- {match['kind']}{what} -->\n"
                f"```{match['language']}\n{want}```\n")

    updated, blocks = MARKED.subn(check, text)
    if update:
        document.write_text(updated)
        wrong = []
    for bare in BARE.finditer(text):
        wrong.append(f"{name}: nothing says who runs: {bare['first']}")
    wrong += missing_in_tests(name, text, root)
    if (blocks == 0) != (name in WITHOUT_BLOCKS):
        wrong.append(f"{name} has {blocks} blocks that can be checked")
    return wrong, blocks


def main():
    root, bin_dir = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    names = ["README.md", "ARCHITECTURE.md",
             *(str(page.relative_to(root))
               for page in sorted((root / "docs").glob("*.md")))]
    all_wrong = all_blocks = 0
    for name in names:
        wrong, blocks = check_document(
            name, root, bin_dir, "--update" in sys.argv)
        for what in wrong:
            print(what)
        all_wrong += len(wrong)
        all_blocks += blocks
    print(f"{all_blocks} blocks on {len(names)} pages, {all_wrong} wrong")
    return 1 if all_wrong else 0


sys.exit(main())
