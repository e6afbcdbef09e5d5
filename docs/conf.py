"""How the pages are built: `make docs`. Text is Markdown (MyST), the reference is read from the docstrings."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from sphinx.ext.napoleon import Config, GoogleDocstring  # noqa: E402

import sharnir  # noqa: E402
from sharnir.cli import examples  # noqa: E402

project, author, copyright = "sharnir", "the sharnir contributors", "the sharnir contributors"
release = version = sharnir.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["tools"]
html_theme, html_title, html_static_path, html_css_files = "furo", f"sharnir {release}", ["static"], ["site.css"]
html_theme_options = {"navigation_with_keys": True}
default_role, smartquotes = "code", False
myst_enable_extensions, myst_heading_anchors = ["colon_fence"], 3
autodoc_member_order, autodoc_typehints = "bysource", "signature"
autodoc_default_options = {"members": True, "undoc-members": False}
SECTIONS = Config(napoleon_google_docstring=True, napoleon_numpy_docstring=False, napoleon_use_param=False)

GROUPS = {
    "Mechanisms": "pendulum double_pendulum chain swinging_door slider_crank four_bar linkages cart_flywheel branching_tree",
    "Drives and friction": "dry_pendulum stick_slip friction_arm dc_motor",
    "Control": "computed_torque ur5_path balanced_pendulum swing_up crane_without_sway",
    "Rotation": "spinning_top tumbling_body satellite tippe_top",
    "Ropes": "catenary winch_crane drone_sling tow_rope mooring_line twisted_ring rope_over_drum knot",
    "Contact": "newtons_cradle box_pyramid dominoes gripper conveyor marble_run mixed_heap pushed_door walking_hexapod",
    "Machines": "mf4_stairs mf4_door krt100_trailer krt100_rope trailer_hitch mobile_crane excavator_wall wall_follower shoes",
    "Cables and drives": "block_and_tackle elevator winch_recovery",
    "Large and heavy": "thousand_links light_links crane_arm hexapod exact_chain",
}


COLUMNS = 4


def write_gallery() -> None:
    """The page of examples: their pictures, what each shows, and how it is made."""
    paths, lines = examples.examples(), ["# Gallery", ""]
    lines += ["Each example is one screen long, and checks itself: `sharnir run NAME`. To look at one: `sharnir view NAME`.", ""]
    groups = {title: [n for n in names.split() if n in paths] for title, names in GROUPS.items()}
    rest = [n for n in paths if not any(n in names for names in groups.values())]
    for title, names in (groups | ({"More": rest} if rest else {})).items():
        lines += [f"## {title}", "", "| " * COLUMNS + "|", "|---" * COLUMNS + "|"]
        drawn = {name for name in names if (HERE / "images" / "gallery" / f"{name}.png").is_file()}
        words = {name: f"![{name}](images/gallery/{name}.png)" if name in drawn else name.replace("_", " ") for name in names}
        cells = [f"[{words[name]}](#{name.replace('_', '-')})" for name in names]
        cells += [""] * (-len(cells) % COLUMNS)
        lines += ["| " + " | ".join(cells[i : i + COLUMNS]) + " |" for i in range(0, len(cells), COLUMNS)] + [""]
        for name in names:
            lines += [f"### {name.replace('_', ' ')}", "", examples.summary(paths[name]), ""]
            lines += [f"<details><summary>examples/{name}.py</summary>", ""]
            lines += [f"```{{literalinclude}} ../examples/{name}.py", ":language: python", "```", "", "</details>", ""]
    text = "\n".join(lines)
    path = HERE / "gallery.md"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def plain_markup(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with words in backticks: what RST would take for markup is taken as it stands."""
    text = "\n".join(lines)
    parts = re.split(r"(``[^`]*``|`[^`\n]*(?:\n\s*[^`\n]*)?`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([*|])", r"\\\1", re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", parts[i]))
    lines[:] = "".join(parts).split("\n")
    if what in ("class", "exception", "function", "method", "module"):  # which have arguments; a value has a colon in its text
        lines[:] = GoogleDocstring("\n".join(lines), SECTIONS, app, what, name, thing, options).lines()


def setup(app: Any) -> None:
    """Called by Sphinx."""
    write_gallery()
    app.connect("autodoc-process-docstring", plain_markup)
