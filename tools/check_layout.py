"""Proves the layout of the source (docs/adr/0001-architecture.md) from the files themselves.

A module includes only lower modules, and of another module only its public header (PUBLIC_FOR names the
exceptions), which shows few others; headers have no variables; every C++ source belongs to a target; only
headers that muster/muster.h reaches are installed; no file grows past 600 lines; no file names a machine or a
package host. Prints each problem; exits 1 if any.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, compile_commands, walk

# The modules and their layers; a module may include only modules of a lower layer.
LAYERS = {
    "base": 0,
    "json": 1,
    "net": 1,
    "telemetry": 1,
    "tensor": 1,
    "cluster": 2,
    "collective": 2,
    "graph": 2,
    "data": 2,
    "checkpoint": 2,
    "server": 2,
    "nn": 3,
    "train": 4,
    "launch": 5,
}
# How many headers of a module its public one may show to others, itself not counted. Lower it when you can.
SHOWN_MAX = {
    "base": 18,
    "checkpoint": 18,
    "cluster": 14,
    "collective": 2,
    "data": 15,
    "graph": 9,
    "launch": 14,
    "net": 10,
    "nn": 32,
    "server": 10,
    "telemetry": 4,
    "tensor": 3,
    "train": 29,
}
# A second public header of a module, and who may include it beside the module itself: modules, and folders of
# programs.
PUBLIC_FOR = {
    "muster/checkpoint/conversion.h": {"python", "apps", "train"},
    "muster/checkpoint/mesh_layout.h": {"launch", "train"},
    "muster/checkpoint/sample_log.h": {"apps", "train"},
    "muster/launch/call_times.h": {"apps"},
    "muster/launch/dashboard/job_server.h": {"apps"},
    "muster/launch/runs/runs.h": {"apps"},
    "muster/launch/settings/mesh_file.h": {"apps"},
    "muster/base/call_times.h": {"graph", "launch", "train"},
    "muster/base/control_groups.h": {"train"},
    "muster/base/cores.h": {"checkpoint", "cluster", "collective", "data", "launch", "server", "train"},
    "muster/base/protobuf.h": {"checkpoint", "telemetry", "train"},
    "muster/base/stacks.h": {"cluster", "python"},
    "muster/base/state_clock.h": {"collective", "graph", "server", "train"},
    "muster/base/termination.h": {"cluster", "train"},
    "muster/graph/cost/graph_observer.h": {"train"},
    "muster/graph/cost/step_parts.h": {"train"},
    "muster/graph/cost/prediction.h": {"train"},
    "muster/graph/explanation.h": {"nn", "python", "train"},
    "muster/graph/host_function.h": {"python"},
    "muster/graph/onnx/onnx.h": {"train"},
    "muster/train/network_trace.h": {"python"},
    "muster/graph/plan.h": {"nn", "train", "benchmarks"},
    "muster/graph/random_streams.h": {"train"},
    "muster/graph/served.h": {"nn", "train"},
    "muster/graph/sharding/choice.h": {"train"},
    "muster/graph/sharding/mesh.h": {"train"},
    "muster/graph/sharding/updates.h": {"nn"},
    "muster/train/step_planner.h": {"python"},
    "muster/tensor/kernels.h": {"graph", "server", "benchmarks"},
    "muster/tensor/parallel.h": {"graph"},
}
PUBLIC = "muster/muster.h"  # for programs: it includes public headers, and nothing of the library includes it
LINES_MAX = 600
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# A variable of a header's functions, templates or namespaces, but for constants.
VARIABLE = re.compile(
    r"\s*(?:static|inline|thread_local)\b(?!.*\b(?:constexpr|consteval)\b)[^()=;{}]*?[\s&*>](\w+)\s*(?:=|;|\{[^{}]*\};)"
)
# The same in a source: of a function, or of a namespace, which clang-format does not indent.
NO_VARIABLE = (
    "return|using|extern|typedef|goto|static|inline|class|struct|enum|template|friend|namespace|else|case|default"
    "|break|continue|public|private|protected"
)
CHANGING = re.compile(
    rf"(?:\s+(?:static|thread_local)|(?:static |thread_local |inline )*(?!(?:{NO_VARIABLE})\b))"
    r"(?!.*\b(?:const|constexpr|static_assert)\b)"
    r"\s?[A-Za-z_][\w:]*(?:<[^=;]*>)?[\s*&]+(\w+)(?:\s=[^;=]*|\{[^{}]*\})?;"
)
# Where a module keeps what a process has once (ADR 27), or what has no state.
STATE_OF = (
    "muster/base/clock.cpp",
    "muster/base/files.cpp",
    "muster/base/process.cpp",
    "muster/checkpoint/storage.cpp",
    "muster/checkpoint/write_throttle.cpp",
    "muster/collective/ucx/context.cpp",
    "muster/collective/ucx_pump.cpp",
    "muster/graph/thread_state.cpp",
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")  # of Markdown, into this tree
TEXT = {".cpp", ".h", ".py", ".pyi", ".sh", ".cmake", ".txt", ".md", ".toml", ".json", ""}
# Each in two halves, so that this file does not name what it forbids.
FORBIDDEN = [
    "".join(halves)
    for halves in [
        ("/ro", "ot/"),
        ("/wo", "rk/"),
        ("/opt/wh", "eels"),
        ("/ho", "me/"),
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("deb.debian", ".org"),
    ]
]
# Built by tests/install as a project of its own, from the installed package; where UCX is; where PyTorch is.
OTHER_PROJECTS = (
    "muster/collective/ucx/",
    "cmake/self_contained/",
    "python/muster/torch/",
    "tests/install/",
)


def module_of(path: str) -> str | None:
    """The module of `muster/<module>/...`, or of a module's own unit tests."""
    parts = path.split("/")
    if parts[0] == "muster" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["tests", "unit"] and len(parts) > 3:
        return parts[2]
    return None


def include_problem(path: str, included: str) -> str | None:
    """What is wrong with `included` in the file `path` (both relative to the root), if anything."""
    in_library = path.startswith("muster/")
    if not included.startswith("muster/"):
        return (
            f'"{included}" is not spelled from the root ("muster/<module>/<file>.h")' if in_library else None
        )
    module, target = module_of(path), included.split("/")[1]
    if included == PUBLIC:
        return f'"{PUBLIC}" is for programs that use the library, not for the library' if in_library else None
    if target not in LAYERS:
        return f'"{included}" names no module'
    if path != PUBLIC and in_library and module not in LAYERS:
        return f"'{module}' is no module: name it in tools/check_layout.py and docs/adr/0001-architecture.md"
    if target == module:
        return None
    if path != PUBLIC and in_library and LAYERS[target] >= LAYERS[module]:
        return f"{module} (layer {LAYERS[module]}) must not include {target} (layer {LAYERS[target]})"
    if included in PUBLIC_FOR:
        users = PUBLIC_FOR[included]
        if module in users or path.split("/")[0] in users:
            return None
        return f'"{included}" is for {" and ".join(sorted(users))} alone'
    joins_modules = path.startswith(("tests/sim/", "tests/process/", "tests/fuzz/"))
    if included != f"muster/{target}/{target}.h" and not joins_modules:
        return f'"{included}" is private to {target}: include its public header "muster/{target}/{target}.h"'
    return None


def layering_problems(root: Path) -> Iterator[str]:
    for file in walk(root, {".cpp", ".h"}):
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            problem = match and include_problem(path, match.group(1))
            if problem:
                yield f"{path}:{number}: {problem}"


def reached_headers(folders: list[Path], first: str) -> set[str]:
    """What `first` (muster/...) includes, directly or not, of the headers below `folders`."""
    reached, to_read = set(), [first]
    while to_read:
        name = to_read.pop()
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        found = [INCLUDE.match(line) for line in file.read_text().splitlines()] if file else []
        fresh = {match[1] for match in found if match} - reached
        to_read += fresh
        reached |= fresh
    return reached - {first}


def shown_headers(root: Path, module: str) -> list[str]:
    """The headers of a module that come with its public one."""
    return [h for h in reached_headers([root], f"muster/{module}/{module}.h") if module_of(h) == module]


def state_problems(root: Path) -> Iterator[str]:
    """Variables in headers: a program and libmuster.so would each have one (docs/adr/0035-packages.md)."""
    for file in walk(root / "muster", {".h"}):
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := VARIABLE.match(line):
                yield (
                    f"{path}:{number}: '{match[1]}' is a variable in a header, which programs would have "
                    "twice: keep it in a source"
                )


def global_state_problems(root: Path) -> Iterator[str]:
    """Variables of functions and namespaces in sources, but for constants (docs/adr/0027-global-state.md)."""
    for file in walk(root, {".cpp"}):
        path = file.relative_to(root).as_posix()
        if path in STATE_OF or not path.startswith(("muster/", "python/muster/bindings/")):
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := CHANGING.match(line):
                yield (
                    f"{path}:{number}: '{match[1]}' is state that a process has once: make it a member "
                    "of an object, or of its module's process() (ADR 27)"
                )


def width_problems(root: Path) -> Iterator[str]:
    for module, allowed in SHOWN_MAX.items():
        shown = len(shown_headers(root, module))
        if shown > allowed:
            yield (
                f"muster/{module}/{module}.h:1: shows {shown} headers of the module, {allowed} are allowed "
                "(SHOWN_MAX in tools/check_layout.py): what do others need of them?"
            )


def install_problems(root: Path, build: Path) -> Iterator[str]:
    """Headers that the build installs though no program can need them."""
    script = build / "cmake_install.cmake"
    generated = build / "generated"
    reached = reached_headers([root, generated], PUBLIC) | {PUBLIC}
    for installed in re.findall(r'"([^"]+\.h)"', script.read_text() if script.is_file() else ""):
        folder = generated if Path(installed).is_relative_to(generated) else root
        name = Path(installed).relative_to(folder).as_posix()
        if name not in reached:
            yield f"{name}:1: is installed, though {PUBLIC} does not reach it"


def build_problems(root: Path) -> Iterator[str]:
    """Options of single files that a build with precompiled headers does not take."""
    for file in walk(root, {".txt"}):
        if file.name == "CMakeLists.txt" and "COMPILE_OPTIONS" in file.read_text():
            path = file.relative_to(root).as_posix()
            yield f"{path}:1: sets COMPILE_OPTIONS of files: muster_file_options does, without its header"


def text_problems(root: Path) -> Iterator[str]:
    for file in walk(root, TEXT):
        path = file.relative_to(root).as_posix()
        try:
            lines = file.read_text().splitlines()
        except UnicodeDecodeError:
            continue  # data, not text
        if len(lines) > LINES_MAX and not path.startswith(("tests/seeds/", "docs/reference/")):
            yield f"{path}:{LINES_MAX}: {len(lines)} lines: ask what second thing this file does"
        is_code = False  # of a block in a page, where brackets are no links
        for number, line in enumerate(lines, 1):
            for word in FORBIDDEN:
                if word in line:
                    yield f"{path}:{number}: names '{word}', which belongs to one machine"
            is_code ^= line.lstrip().startswith("```")
            for link in LINK.findall(line) if file.suffix == ".md" and not is_code else []:
                if not (file.parent / link).exists():
                    yield f"{path}:{number}: links to '{link}', which is not there"


def stray_problems(root: Path, build: Path) -> Iterator[str]:
    """Sources that no target of the build compiles, tests that pytest does not collect."""
    built = {file for file, _ in compile_commands(build)}
    for file in walk(root, {".cpp"}):
        path = file.relative_to(root).as_posix()
        if file.resolve() not in built and not path.startswith(OTHER_PROJECTS):
            yield f"{path}:1: no target builds this file"
    for file in walk(root / "tests", {".py"}):
        if file.name.endswith("_test.py"):
            yield f"{file.relative_to(root).as_posix()}:1: pytest collects only test_*.py"


def problems(root: Path, build: Path) -> list[str]:
    return [
        *layering_problems(root),
        *width_problems(root),
        *state_problems(root),
        *global_state_problems(root),
        *text_problems(root),
        *install_problems(root, build),
        *build_problems(root),
        *stray_problems(root, build),
    ]


def main() -> int:
    found = problems(ROOT, ROOT / "build")
    print("\n".join(found) if found else "layout: as docs/adr/0001-architecture.md says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
