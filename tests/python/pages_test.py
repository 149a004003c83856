"""The pages about Python are true: their code runs, and prints what they say.

The blocks of `python` on a page run in their order, in one namespace, in an
empty folder with `tests` in it. A block of `text` behind one is what it prints.
A line <!-- needs: MODULE --> before a block leaves it out, with what it prints,
where there is no such module.
"""

import importlib.util
import re

import pytest

from conftest import TOP

BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>\w+) -->\n)?"
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<prints>.*?)^```\n)?", re.M | re.S)
PAGES = sorted(page.name for page in (TOP / "docs").glob("python*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_prints_what_the_page_says(
        name, tmp_path, monkeypatch, capsys):
    (tmp_path / "tests").symlink_to(TOP / "tests")
    monkeypatch.chdir(tmp_path)
    text = (TOP / "docs" / name).read_text()
    names = {"__name__": name}
    count = 0
    for match in BLOCK.finditer(text):
        if match["needs"] and not importlib.util.find_spec(match["needs"]):
            continue
        line = text.count("\n", 0, match.start("code"))
        code = compile("\n" * line + match["code"], str(TOP / "docs" / name),
                       "exec")
        exec(code, names)
        printed = capsys.readouterr().out
        if match["prints"] is not None:
            assert printed == match["prints"], f"{name}:{line}"
        count += 1
    assert count > 0
