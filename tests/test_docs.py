"""The snippets of every page run, one after the other; links and figures of the pages are those of the repository."""

import re
import warnings
from pathlib import Path

import pytest

import sharnir as sh
from sharnir.cli import examples

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "```python" in p.read_text(encoding="utf-8") and p.name != "gallery.md")
NEEDS = {"training.md": "gymnasium", "learning.md": "gymnasium"}  # what an extra brings


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason=f"{page.name} needs {NEEDS[page.name]}")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "snippet"}
    found = snippets(page)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, snippet in enumerate(found):
            exec(compile(snippet, f"{page.name}, snippet {number + 1}", "exec"), names)
    assert found


def test_every_page_has_something_to_run():
    pages = [p for p in DOCS.rglob("*.md") if p.name not in ("gallery.md", "changelog.md") and "api" not in p.parts]
    assert not [str(p.relative_to(ROOT)) for p in pages if not snippets(p)]


def test_every_recipe_and_page_is_listed():
    recipes = (DOCS / "recipes" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "recipes").glob("*.md"):
        titles = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.M)
        assert not [title for title in titles if f"- [{title}]({page.name}#" not in recipes], page.name
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert not [p.name for p in (DOCS / "tutorials").glob("*.md") if f"tutorials/{p.stem}\n" not in index]


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert len(links) > 10 and not [link for link in links if not (ROOT / link).exists()]


def test_the_version_is_told_once():
    assert f"version: {sh.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{sh.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_example_has_its_picture():
    names = {p.stem for p in (DOCS / "images" / "gallery").glob("*.png")}
    assert set(examples.examples()) <= names, "python docs/tools/pictures.py makes them"
    size = sum(p.stat().st_size for p in (DOCS / "images").rglob("*.*"))
    print(f"pictures: {size / 1e6:.2f} MB")
    assert size < 3e6
