#!/usr/bin/env python3
"""Makes the site of the documentation in build/site: the pages of this tree, both references, a search.

./dev docs calls it, with the Python of an environment that has tools/requirements-docs.txt. Pages lie in
build/site-source as they lie in the tree, so that links between them and into the source hold; a link that
does not is an error. The site needs no internet: make_site.py ends with 1 where a page would load something.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import cpp_pages

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "build/site-source"
SITE = ROOT / "build/site"
# The contents, in this order; a page that no section names comes last.
SECTIONS = {
    "First steps": [
        "docs/guide/python.md",
        "docs/guide/mindspore.md",
        "docs/guide/cpp.md",
        "docs/guide/data.md",
    ],
    "Training": [
        "docs/guide/model.md",
        "docs/guide/checkpoints.md",
        "docs/guide/export.md",
        "docs/guide/cells.md",
        "docs/guide/transformers.md",
        "docs/guide/mixed-precision.md",
        "docs/guide/placement.md",
        "docs/guide/parallel.md",
        "docs/guide/collectives.md",
        "docs/guide/explain.md",
        "docs/guide/pytorch.md",
    ],
    "Running jobs": [
        "docs/guide/launch.md",
        "docs/guide/launch-*.md",
        "docs/guide/hosts.md",
        "docs/guide/rdma.md",
        "docs/guide/cluster.md",
        "docs/guide/forming.md",
        "docs/guide/watching.md",
        "docs/guide/dashboard.md",
        "docs/guide/runs.md",
        "docs/guide/metrics.md",
        "docs/guide/profiling.md",
        "docs/guide/security.md",
    ],
    "When processes die": ["docs/guide/recovery.md", "docs/guide/recovery-points.md"],
    "Reference": ["docs/reference/README.md", "cpp/README.md", "docs/formats/README.md"],
    "Muster itself": [
        "CONTRIBUTING.md",
        "docs/dev/*.md",
        "docs/adr/README.md",
        "benchmarks/README.md",
        "CHANGELOG.md",
        "THIRD_PARTY_NOTICES.md",
    ],
}
# Pages that lead to others of their folder.
PARENTS = ("docs/reference", "cpp", "docs/formats", "docs/adr")
LEFT_OUT = ("docs/dev/progress.md",)  # a diary
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?\)")
LOADED = re.compile(r"""<(?:script|img|iframe|link(?=[^>]*stylesheet))[^>]*(?:src|href)=["'](?:https?:)?//""")


def page_files() -> list[Path]:
    folders = ("docs/guide", "docs/reference", "docs/formats", "docs/dev", "docs/adr")
    found = [file for folder in folders for file in sorted((ROOT / folder).glob("*.md"))]
    found += [ROOT / name for names in SECTIONS.values() for name in names if (ROOT / name).is_file()]
    left_out = {ROOT / name for name in LEFT_OUT}
    return [ROOT / "README.md", *(file for file in dict.fromkeys(found) if file not in left_out)]


def staged_name(file: Path) -> str:
    name = file.relative_to(ROOT).as_posix()
    return "index.md" if name == "README.md" else name


def stage_page(file: Path, pages: set[Path]) -> str:
    """The page's text with links that hold in the site; copies what they lead to and is no page."""

    def linked(match: re.Match) -> str:
        target = (file.parent / match[2]).resolve()
        if ":" in match[2] or not target.exists():
            return match[0]
        if target == ROOT / "README.md":
            return f"{match[1]}{match[2].removesuffix('README.md')}index.md{match[3] or ''})"
        if target.is_file() and target not in pages:
            copy = SOURCE / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, copy)
        return match[0]

    text = re.sub(r"<!-- .*?-->\n*", "", file.read_text(), flags=re.DOTALL)
    if file.parent == ROOT / "docs/reference":
        text = text.replace("```python\n", "```{code-block} python\n:class: signature\n\n")
    return LINK.sub(linked, text)


def contents(caption: str, names: list[str]) -> str:
    listed = "\n".join(f"/{name.removesuffix('.md')}" for name in names)
    title = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{title}\n{listed}\n```\n"


def sections(names: list[str]) -> dict[str, list[str]]:
    found = {
        caption: [name for pattern in patterns for name in names if Path(name).match(pattern)]
        for caption, patterns in SECTIONS.items()
    }
    taken = {"index.md", *(name for listed in found.values() for name in listed)}
    rest = [name for name in names if name not in taken]
    return {**found, "More": rest} if rest else found


def stage() -> None:
    shutil.rmtree(SOURCE, ignore_errors=True)
    files = page_files()
    texts = {staged_name(file): stage_page(file, set(files)) for file in files}
    modules = cpp_pages.pages([ROOT, ROOT / "build/generated"])
    texts |= {f"cpp/{module}.md": text for module, text in modules.items()}
    texts["cpp/README.md"] = cpp_index(modules)
    top = [name for name in texts if name.rpartition("/")[0] not in PARENTS or name.endswith("/README.md")]
    for caption, names in sections(top).items():
        texts["index.md"] += contents(caption, names)
    for folder in PARENTS:
        children = [name for name in texts if name.startswith(f"{folder}/") and name not in top]
        texts[f"{folder}/README.md"] += contents("", children)
    for name, text in texts.items():
        (SOURCE / name).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / name).write_text(text)
    (SOURCE / "_static").mkdir()
    shutil.copyfile(ROOT / "tools/site/site.css", SOURCE / "_static/site.css")


def cpp_index(modules: dict[str, str]) -> str:
    rows = "\n".join(f"| [{module}]({module}.md) | {summary(text)} |" for module, text in modules.items())
    return f"""# C++ reference

What `#include <muster/muster.h>` brings, by module. [The guide](../docs/guide/cpp.md) has a first program.

| module | |
| --- | --- |
{rows}
"""


def summary(page: str) -> str:
    """The first sentence of a module's contract."""
    words = " ".join(page.split("\n\n")[1].split())
    return re.split(r"(?<=[.:]) ", re.sub(r"^Public header of [^:]*: ", "", words))[0].rstrip(":")


def loads_from_elsewhere() -> list[str]:
    return [str(page) for page in SITE.rglob("*.html") if LOADED.search(page.read_text())]


def main() -> int:
    if not (ROOT / "build/generated/muster/nn/op_functions.h").is_file():
        print("make_site: build/generated has no C++ functions of the ops: ./dev build", file=sys.stderr)
        return 1
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-c", ROOT / "tools/site", "-d", ROOT / "build/site-doctrees", SOURCE, SITE]
    if subprocess.run(command, check=False).returncode != 0:
        return 1
    problems = loads_from_elsewhere()
    for page in problems:
        print(f"{page}: loads something from another host", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
