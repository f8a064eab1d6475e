"""The checks of tools/check_layout.py find what they promise to find, and this tree passes them."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layout  # noqa: E402


def tree(root: Path, files: dict[str, str], built: list[str] | None = None) -> list[str]:
    """The problems of a tree made of `files`, of which the build compiles `built` (None: all sources)."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for folder in ("muster", "tests"):
        (root / folder).mkdir(exist_ok=True)
    sources = [name for name in files if name.endswith(".cpp")] if built is None else built
    (root / "build").mkdir(exist_ok=True)
    commands = [{"directory": str(root), "file": str(root / name), "command": "c++"} for name in sources]
    (root / "build" / "compile_commands.json").write_text(json.dumps(commands))
    return check_layout.problems(root, root / "build")


@pytest.mark.skipif(not (ROOT / "build/compile_commands.json").exists(), reason="needs ./dev build")
def test_this_tree_is_in_order():
    assert check_layout.problems(ROOT, ROOT / "build") == []


def test_a_module_may_include_the_public_header_of_a_lower_module_and_its_own_files(tmp_path):
    text = '#include "muster/base/base.h"\n#include "muster/net/frame.h"\n#include <vector>\n'
    assert tree(tmp_path, {"muster/net/frame.cpp": text}) == []


@pytest.mark.parametrize("included", ["muster/train/train.h", "muster/tensor/tensor.h"])
def test_a_module_must_not_include_a_higher_module_or_a_sibling(tmp_path, included):
    [problem] = tree(tmp_path, {"muster/net/a.cpp": f'\n#include "{included}"\n'})
    assert problem.startswith("muster/net/a.cpp:2: net (layer 1) must not include")


def test_only_the_public_header_of_another_module_may_be_included(tmp_path):
    [problem] = tree(tmp_path, {"apps/muster/main.cpp": '#include "muster/net/frame.h"\n'})
    assert "private to net" in problem


@pytest.mark.parametrize(
    "line",
    [
        "  static int calls = 0;",
        "static std::map<int, std::string> known;",
        "  thread_local Buffer* buffer = nullptr;",
        "  static const std::string& name = make_name();",
        "inline std::atomic<bool> told{false};",
    ],
)
def test_a_header_has_no_variable(tmp_path, line):
    [problem] = tree(tmp_path, {"muster/net/a.h": f"\n{line}\n"})
    assert problem.startswith("muster/net/a.h:2: '") and "a variable in a header" in problem


def test_constants_and_functions_of_headers_are_no_variables(tmp_path):
    text = """
inline constexpr int most = 4;
static constexpr std::array both = {1, 2};
static Session* current();
static std::string of(int number = 0) { return {}; }
inline Shape operator+(const Shape& one, int two) {
extern thread_local State* state;
static_assert(most == 4);
"""
    assert tree(tmp_path, {"muster/net/a.h": text}) == []


@pytest.mark.parametrize(
    "line",
    [
        "std::atomic<unsigned> forks = 0;",
        "thread_local Throttle* throttle_of_thread = nullptr;",
        "nb::handle check;",
        "PyObject* words = nullptr;",
        "std::array<PyObject*, all_dtypes.size()> objects{};",
        "  static std::atomic<bool> is_told = false;",
        "  static std::mutex mutex;",
        "  static auto* state = new State;",
    ],
)
def test_state_that_a_process_has_once_stands_in_its_modules_struct(tmp_path, line):
    [problem] = tree(tmp_path, {"muster/net/a.cpp": f"\n{line}\n"})
    assert problem.startswith("muster/net/a.cpp:2: '") and "process()" in problem


def test_constants_and_members_of_sources_are_no_state_of_the_process(tmp_path):
    text = """
constexpr int most = 4;
const std::string name = "a";
using nn::Optimizer;
int count();
struct State {
  int steps = 0;
};
  static const bool once = [] { return true; }();
  static const auto& table = *new Table(rows());
  return made;
}  // namespace
"""
    assert tree(tmp_path, {"muster/net/a.cpp": text}) == []


def test_a_public_header_shows_no_more_headers_than_are_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(check_layout, "SHOWN_MAX", {"net": 2})
    files = {
        "muster/net/net.h": '#include "muster/net/a.h"\n',
        "muster/net/a.h": '#include "muster/net/b.h"\n#include "muster/base/base.h"\n',
        "muster/net/b.h": '#include "muster/net/a.h"\n',
        "muster/net/private.h": '#include "muster/net/net.h"\n',
    }
    assert tree(tmp_path / "two", files) == []
    [problem] = tree(tmp_path / "three", files | {"muster/net/b.h": '#include "muster/net/private.h"\n'})
    assert problem.startswith("muster/net/net.h:1: shows 3 headers of the module, 2 are allowed")


def test_a_header_that_is_installed_though_no_program_reaches_it_is_found(tmp_path):
    names = ["muster/muster.h", "muster/net/net.h", "muster/net/private.h"]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "cmake_install.cmake").write_text(
        "".join(f'FILES "{tmp_path / n}"\n' for n in names)
    )
    files = {"muster/muster.h": '#include "muster/net/net.h"\n', "muster/net/net.h": ""}
    [problem] = tree(tmp_path, files)
    assert problem.startswith("muster/net/private.h:1: is installed")


def test_the_kernels_are_for_the_engine_the_servers_and_benchmarks(tmp_path):
    text = '#include "muster/tensor/kernels.h"\n'
    files = ["muster/graph/a.cpp", "tests/unit/graph/a_test.cpp", "benchmarks/a.cpp", "muster/nn/a.cpp"]
    [problem] = tree(tmp_path, dict.fromkeys(files, text))
    assert problem == (
        'muster/nn/a.cpp:1: "muster/tensor/kernels.h" is for benchmarks and graph and server alone'
    )


def test_a_unit_test_sees_inside_its_own_module_only(tmp_path):
    text = '#include "muster/net/frame.h"\n#include "muster/base/hash.h"\n'
    [problem] = tree(tmp_path, {"tests/unit/net/frame_test.cpp": text})
    assert "private to base" in problem


def test_the_library_spells_includes_from_the_root(tmp_path):
    [problem] = tree(tmp_path, {"muster/net/a.cpp": '#include "frame.h"\n'})
    assert "spelled" in problem and "root" in problem


def test_a_source_that_no_target_builds_is_found(tmp_path):
    [problem] = tree(tmp_path, {"examples/lost.cpp": "int main() {}\n"}, built=[])
    assert problem == "examples/lost.cpp:1: no target builds this file"


def test_options_of_a_single_file_leave_the_precompiled_header(tmp_path):
    text = "set_source_files_properties(a.cpp PROPERTIES COMPILE_OPTIONS -fno-math-errno)\n"
    [problem] = tree(tmp_path, {"muster/net/CMakeLists.txt": text})
    assert problem.startswith("muster/net/CMakeLists.txt:1:") and "muster_file_options" in problem


def test_a_python_test_that_pytest_does_not_collect_is_found(tmp_path):
    [problem] = tree(tmp_path, {"tests/python/net_test.py": ""})
    assert "collects" in problem and "test_*.py" in problem


def test_a_file_of_more_than_600_lines_is_found(tmp_path):
    [problem] = tree(tmp_path, {"tools/long.py": "pass\n" * 601})
    assert problem.startswith("tools/long.py:600: 601 lines")


def test_a_path_of_one_machine_is_found(tmp_path):
    [problem] = tree(tmp_path, {"docs/a.md": "fine\nsee " + "/ro" + "ot/notes\n"})
    assert problem.startswith("docs/a.md:2: names")


def test_a_link_to_a_page_that_is_not_there_is_found(tmp_path):
    text = "see [this](../README.md) and [that](https://example.org)\nand [the other](b.md#part)\n"
    [problem] = tree(tmp_path, {"docs/a.md": text, "README.md": ""})
    assert problem == "docs/a.md:2: links to 'b.md', which is not there"


def test_brackets_in_the_code_of_a_page_are_no_links(tmp_path):
    text = "```cpp\nauto f = [&](int x) { return x; };\n```\n[a](b.md)\n"
    [problem] = tree(tmp_path, {"docs/a.md": text})
    assert problem == "docs/a.md:4: links to 'b.md', which is not there"
