"""What an MJCF file reads and how large it becomes, checked before MuJoCo's compiler sees it.

MuJoCo opens included files, meshes, height fields and textures itself, and repeats elements as often as a file says. Both are
bounded here: files are inside the roots, and counts, grids and memory are small enough to compile in seconds.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from sharnir.io.folders import Folders
from sharnir.io.xml import Element, read_xml

LARGEST_NUMBER, SMALLEST_NUMBER = 1e12, 1e-30
"""Numbers of a file."""
MAX_COUNT = 1e5  # of counts such as the rows of a height field
MAX_CELLS = 4_000_000  # samples of a height field, pixels of a texture
MAX_REPEATED = 5_000  # elements that repetitions make: the compiler takes minutes for 5,000 free bodies
MAX_INCLUDED = 200  # that are included
MAX_MEMORY = 2**30  # bytes of <size memory="…">
COUNT_ATTRIBUTES = ("nrow", "ncol", "count", "builtin", "width", "height", "iterations")
LARGE_SIZES = {"nstack": 5e7, "njmax": 1e6, "nconmax": 1e6}  # attributes of <size> that may be larger
NAME_ATTRIBUTES = ("name", "file", "class", "model")
FOLDER_WORDS = ("meshdir", "texturedir", "assetdir")
_MEMORY = re.compile(r"(\d{1,18})([kmgtpe]?)", re.IGNORECASE)


def check_model(file: Path, root: Element, folders: Folders) -> None:
    """Check a model and all that it includes; a SceneError names file, line and attribute."""
    parts = [(root, file.parent)]
    seen = {Path(os.path.realpath(file))}
    asked = []  # elements that name files, with the folder of the file they stand in
    places = {""}
    elements = 0.0
    while parts:
        top, folder = parts.pop()
        stack = [(top, 1.0)]
        while stack:
            element, times = stack.pop()
            times *= _repeated(element)
            elements += times - 1.0
            if elements > MAX_REPEATED:
                element.refuse(f"repetitions make at most {MAX_REPEATED} elements", "count")
            stack += [(child, times) for child in element.children]
            _check_numbers(element)
            places |= {element.attributes[word] for word in FOLDER_WORDS if word in element.attributes}
            names = [name for name in element.attributes if name.startswith("file")]
            asked += [(element, name, folder) for name in names]
            if element.tag in ("include", "model") and names:
                parts += _included(element, file.parent, folder, folders, seen)
    for element, name, folder in asked:
        _check_inside(element, name, [file.parent, folder], places, folders)


def _included(element: Element, main: Path, folder: Path, folders: Folders, seen: set[Path]) -> list[tuple[Element, Path]]:
    """Files of MJCF that an element includes, each once."""
    _check_inside(element, "file", [main, folder], {""}, folders)
    out = []
    for base in (main, folder):
        found = Path(os.path.realpath(base / element.attributes["file"]))
        if found not in seen and found.is_file():
            seen.add(found)
            if len(seen) > MAX_INCLUDED:
                element.refuse(f"at most {MAX_INCLUDED} files are included", "file")
            out.append((read_xml(found), found.parent))
    return out


def _check_inside(element: Element, attribute: str, bases: list[Path], places: set[str], folders: Folders) -> None:
    """Refuse a file that is outside the roots, wherever MuJoCo may look for it."""
    name = element.attributes[attribute]
    if "\0" in name:
        element.refuse("the name of a file", attribute)
    tries = {base / place / name for base in bases for place in places}
    bare = {base / place / os.path.basename(name) for base in bases for place in places}  # with strippath
    outside = {path for path in tries | bare if not folders.contain(path)}
    if tries <= outside or any(os.path.lexists(path) for path in outside):
        element.refuse(str(folders), attribute)


def _repeated(element: Element) -> float:
    """How often the content of an element is made."""
    if element.tag not in ("replicate", "composite", "flexcomp"):
        return 1.0
    counts = [float(word) for word in element.attributes.get("count", "1").split() if word.isascii() and word.isdigit()]
    return max(1.0, math.prod(min(count, MAX_COUNT) for count in counts))


def _check_numbers(element: Element) -> None:
    """Refuse numbers with which MuJoCo's compiler may run for hours or leave a model that is not finite."""
    for attribute, text in element.attributes.items():
        most = MAX_COUNT if attribute in COUNT_ATTRIBUTES else LARGEST_NUMBER
        if element.tag == "size":
            most = LARGE_SIZES.get(attribute, MAX_COUNT)
        for word in text.split() if attribute not in NAME_ATTRIBUTES else ():
            try:
                value = abs(float(word))
            except ValueError:
                continue
            if element.tag == "size" and attribute == "memory":
                continue
            if not value <= most or 0 < value < SMALLEST_NUMBER:
                element.refuse(f"numbers are finite, at most {most:g} and, unless 0, at least {SMALLEST_NUMBER:g}", attribute)
    for a, b in (("nrow", "ncol"), ("width", "height")):
        if _number(element, a) * _number(element, b) > MAX_CELLS:
            element.refuse(f"at most {MAX_CELLS} samples", a, b)
    if element.tag == "size" and "memory" in element.attributes:
        found = _MEMORY.fullmatch(element.attributes["memory"].strip())
        if found and int(found[1]) << (10 * " kmgtpe".index(found[2].lower() or " ")) > MAX_MEMORY:
            element.refuse(f"at most {MAX_MEMORY // 2**20}M", "memory")


def _number(element: Element, attribute: str) -> float:
    try:
        return abs(float(element.attributes.get(attribute, "0")))
    except ValueError:
        return 0.0
