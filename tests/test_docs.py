"""The snippets of every page run, one after the other; links and figures of the pages are those of the repository."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "```python" in p.read_text(encoding="utf-8") and p.name != "gallery.md")


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "snippet"}
    found = snippets(page)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, snippet in enumerate(found):
            exec(compile(snippet, f"{page.name}, snippet {number + 1}", "exec"), names)
    assert found
