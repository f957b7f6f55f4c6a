"""Build the documentation: the README, these guides, and a reference of all public names from their docstrings.

::

    sphinx-build -W -n -b html examples/guides BUILD

Sphinx reads pages from one folder only. The README and CONTRIBUTING stand elsewhere, and the pages of the reference
stand nowhere: so all pages are gathered in the build folder first, and Sphinx is pointed there.

    README.md                 -> index.md, with the table of contents
    .github/CONTRIBUTING.md   -> contributing.md, and SECURITY.md and CHANGELOG.md likewise
    examples/guides/README.md -> the order of the menu
    examples/guides/*.md, png -> under their own names
    docstrings                -> reference.md, at its end: a table of names for each room
                                 reference/NAME.rst: a page for each name
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

GUIDES = Path(__file__).resolve().parent
ROOT = GUIDES.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "integrations")]

import rankeval  # noqa: E402 - the checkout, not an installed version

project = "rankeval"
project_copyright = "The rankeval-mlflow developers"
version = release = rankeval.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
html_theme = "alabaster"  # comes with Sphinx, and loads nothing from elsewhere
html_theme_options = {
    "description": rankeval.__doc__.partition("\n")[0].partition(": ")[2],
    "body_max_width": "none",
    "font_family": "system-ui, sans-serif",
    "code_font_size": "0.8em",  # 120 columns fit
    "page_width": "1360px",
    "sidebar_width": "260px",
}
myst_heading_anchors = 3
default_role = "py:obj"  # in a docstring `Evaluation` is a link, and an error if there is no such name
autodoc_typehints = "none"  # the docstrings have the types
autosummary_generate = False
numpydoc_show_class_members = False
toc_object_entries = False  # the sidebar lists pages, not methods
nitpick_ignore_regex = [
    # scikit-learn writes the docstrings of set_fit_request and the like, with links into its own documentation. To
    # follow these links, the build would need the network.
    (r"py:.*", r"sklearn\..*"),
    (r"std:.*", r"metadata_routing|meta-estimator"),
]

# Modules whose public names are named by their module.
MODULES = (
    "rankeval.analysis",
    "rankeval.analysis.curves",
    "rankeval.datasets",
    "rankeval.errors",
    "rankeval.io",
    "rankeval.judging",
    "rankeval.model_selection",
    "rankeval.testing",
    "rankeval.online",
    "rankeval.text",
    "rankeval_mlflow",
    "rankeval_spark",
)

# The sections of the reference beside those of `import rankeval`: a title and the modules' names in it.
EXTENDING = {
    "Extending: a measure": ["rankeval.measures.Family"],
    "Extending: a significance test or a correction": [
        "rankeval.significance.SignificanceTest",
        "rankeval.significance.Correction",
        "rankeval.significance.declarations.Settings",
        "rankeval.significance.PairedResult",
        "rankeval.significance.declarations.TESTS",
        "rankeval.significance.declarations.CORRECTIONS",
    ],
    "Extending: a file format": [
        "rankeval.io.formats.Format",
        "rankeval.io.formats.add_format",
        "rankeval.io.formats.OpenFile",
        "rankeval.io.columns.Columns",
    ],
    "Extending: a host": [
        "rankeval.tracking.Host",
        "rankeval.tracking.Tracker",
        "rankeval.tracking.RunRecord",
        "rankeval.tracking.LoggedData",
        "rankeval.tracking.TrackedRun",
        "rankeval.tracking.StoredRun",
    ],
    "Extending: a guard check": [
        "rankeval.guard.guard_check",
        "rankeval.guard.list_checks",
        "rankeval.guard.checks.Registration",
        "rankeval.guard.checks.Finding",
    ],
}

MOVED = {
    "index.md": "README.md",
    "contributing.md": ".github/CONTRIBUTING.md",
    "security.md": ".github/SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages of the site -> files that stand elsewhere in the checkout."""

LINK = re.compile(r"(?P<before>\]\(|^\[[^\]\n]+\]: )(?P<path>[\w./-]+)(?P<after>#[\w-]+|(?=\)|$))", re.MULTILINE)

PAGE = """\
{title}
{line}

.. currentmodule:: {module}

.. auto{kind}:: {title}
"""

SECTION = """
## {title}

```{{eval-rst}}
.. currentmodule:: {module}

.. autosummary::
   :nosignatures:

   {names}

.. toctree::
   :hidden:

   {pages}
```
"""

MENU = """
```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""


def sections() -> dict[str, list[str]]:
    """Return the public names, each with its module, by the title of their section."""
    found: dict[str, list[str]] = {}
    for name in rankeval.__all__:
        public = getattr(rankeval, name)
        if not isinstance(public, ModuleType):
            room = ".".join(public.__module__.split(".")[:2])
            found.setdefault(title_of(room), []).append(f"rankeval.{name}")
    for module in MODULES:
        names = [f"{module}.{name}" for name in public_names(importlib.import_module(module))]
        found.setdefault(title_of(module), []).extend(names)  # of some rooms, names are in `import rankeval` too
    return found | EXTENDING


def title_of(module: str) -> str:
    """Return the beginning of a module's docstring, up to a colon or a full stop."""
    text = inspect.getdoc(importlib.import_module(module)) or module
    title = re.split(r"[:.]", " ".join(text.split()).removeprefix(f"{module}: "))[0]
    return title[0].upper() + title[1:]


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__` of a module, or the functions and classes that it defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def page(full_name: str) -> str:
    """Return the page of a public name, in reStructuredText."""
    module, _, name = full_name.rpartition(".")
    public: Any = getattr(importlib.import_module(module), name)
    options = ""
    if inspect.isclass(public):
        kind = "exception" if issubclass(public, BaseException) else "class"
        # Methods of our own base classes belong to the page; those of scikit-learn's have pages elsewhere.
        foreign = [base.__name__ for base in public.__mro__ if not base.__module__.startswith("rankeval")]
        options = f"   :members:\n   :inherited-members: {', '.join(foreign)}\n"
    elif callable(public):
        kind = "function"
    else:
        kind = "data"
        options = "   :no-value:\n"
    return PAGE.format(title=name, line="=" * len(name), module=module, kind=kind) + options


def write_reference(folder: Path) -> None:
    """Append the tables of all public names to their guide, and write a page for each."""
    (folder / "reference").mkdir()
    parts = []
    for title, names in sections().items():
        module = names[0].rpartition(".")[0]  # descriptions link to names beside them
        for name in names:
            (folder / "reference" / f"{name}.rst").write_text(page(name), encoding="utf-8")
        parts.append(
            SECTION.format(
                title=title,
                module=module,
                names="\n   ".join(name.removeprefix(f"{module}.") for name in names),
                pages="\n   ".join(f"reference/{name}" for name in names),
            )
        )
    with (folder / "reference.md").open("a", encoding="utf-8") as file:
        file.writelines(parts)


def contents() -> dict[str, list[str]]:
    """Return the pages behind the first one, in the groups and the order of the guides' README."""
    groups = re.split(r"^## ", (GUIDES / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {group.partition("\n")[0]: re.findall(r"\]\((\w+)\.md\)", group) for group in groups}
    found["Look up"] += ["contributing", "security", "changelog"]
    return found


def linked(page: Path, folder: Path) -> str:
    """Return a page whose links lead to the gathered pages; of another file of the checkout, a copy is made."""
    pages = {ROOT / path: name for name, path in MOVED.items()} | {GUIDES / "README.md": "index.md"}

    def moved(found: re.Match[str]) -> str:
        target = (page.parent / found["path"]).resolve()
        if not target.is_file() or not target.is_relative_to(ROOT):
            return found[0]
        name = pages.get(target, target.name if target.parent == GUIDES else f"files/{target.relative_to(ROOT)}")
        if name.startswith("files/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, folder / name)
        return f"{found['before']}{name}{found['after']}"

    return LINK.sub(moved, page.read_text(encoding="utf-8"))


def gather_pages(folder: Path) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in GUIDES.glob("*.png"):
        shutil.copy(path, folder)
    guides = {path.name: path for path in GUIDES.glob("*.md") if path.name != "README.md"}  # the list is the menu here
    for name, path in (guides | {name: ROOT / path for name, path in MOVED.items() if name != "index.md"}).items():
        (folder / name).write_text(linked(path, folder), encoding="utf-8")
    readme = linked(ROOT / "README.md", folder)
    menus = [MENU.format(caption=caption, pages="\n".join(pages)) for caption, pages in contents().items()]
    (folder / "index.md").write_text("".join([readme, *menus]), encoding="utf-8")
    write_reference(folder)


def setup(app: Sphinx) -> None:
    """Gather the pages, and point Sphinx at them: it looks for pages after this call."""
    app.srcdir = app.doctreedir / "pages"
    gather_pages(app.srcdir)
