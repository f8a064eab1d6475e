"""docs/guide/cpp.md and the program of README.md work as they stand, with the digits of the tests."""

import os
import re
import subprocess

import pytest
from digits import write_digits
from places import BUILD, ROOT

PAGE = (ROOT / "docs/guide/cpp.md").read_text()
README = (ROOT / "README.md").read_text()


def block(after, language, page=PAGE):
    """The first block of code in `language` behind the text `after`."""
    [code] = re.findall(rf"{re.escape(after)}.*?```{language}\n(.*?)```", page, re.DOTALL)[:1]
    return code


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder, program):
    (folder / "main.cpp").write_text(program)
    (folder / "more.cpp").write_text(
        "#include <muster/muster.h>\n#include <cstdio>\nusing namespace muster;\n"
        + block("**Layers and operations.**", "cpp")
        + block("**Cells with several outputs**", "cpp")
        + "void train_by(LeNet& network, nn::Optimizer& optimizer) {\n"
        + block("**A loss of your own**", "cpp")
        + block("**Gradients that grow too long", "cpp")
        + "}\n"
    )
    (folder / "readme.cpp").write_text(block("## In C++", "cpp", README))
    (folder / "points.cpp").write_text(block("**A loop that goes on after a death**", "cpp"))
    (folder / "mesh.cpp").write_text(block("**Operators over several workers**", "cpp"))
    both = block("`CMakeLists.txt`:", "cmake").replace("main.cpp", "main.cpp more.cpp")
    others = "".join(
        f"add_executable({name} {name}.cpp)\ntarget_link_libraries({name} PRIVATE Muster::muster)\n"
        for name in ("readme", "points", "mesh")
    )
    (folder / "CMakeLists.txt").write_text(both + others)
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        folder,
        "-B",
        folder / "build",
        f"-DCMAKE_PREFIX_PATH={folder / 'muster'}",
    )
    run("cmake", "--build", folder / "build")


@pytest.mark.skipif(not (BUILD / "libmuster.a").exists(), reason="built without the library")
def test_a_project_of_its_own_trains_on_four_workers(tmp_path):
    for component in ("development", "cli"):
        run("cmake", "--install", BUILD, "--component", component, "--prefix", tmp_path / "muster")
    assert (tmp_path / "muster/share/doc/Muster/LICENSE").exists()
    build(tmp_path, block("`main.cpp`:", "cpp"))
    write_digits(tmp_path / "MNIST_Data/train", rows=640)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment["DATA_PATH"] = "MNIST_Data/train"
    program = tmp_path / "build/digits"
    alone = run(program, cwd=tmp_path, env=environment)
    workers = run(tmp_path / "muster/bin/muster", "run", "-n", "4", program, cwd=tmp_path, env=environment)
    for output, prefix in ((alone, ""), (workers, r"\[worker 3\] ")):
        losses = re.findall(rf"^{prefix}epoch: \d, step: 0, loss is (\S+)$", output, re.MULTILINE)
        assert len(losses) == 10
        assert float(losses[-1]) < 0.8 * float(losses[0])

    losses = [float(line) for line in run(tmp_path / "build/readme", cwd=tmp_path, env=environment).split()]
    assert len(losses) == 40
    assert losses[-1] < losses[0]

    program = tmp_path / "build/points"
    command = [tmp_path / "muster/bin/muster", "run", "-n", "2", "--max-restarts", "1", program]
    workers = run(*command, cwd=tmp_path, env=environment)
    [first, second] = re.findall(r"^\[worker \d\] loss of all workers: (\S+)$", workers, re.MULTILINE)
    assert first == second and float(first) < 0.3
    assert (tmp_path / "network.ckpt").exists()

    program = tmp_path / "build/mesh"
    alone = [float(loss) for loss in re.findall(r"loss (\S+)", run(program, cwd=tmp_path, env=environment))]
    workers = run(tmp_path / "muster/bin/muster", "run", "-n", "4", program, cwd=tmp_path, env=environment)
    assert len(alone) == 10 and alone[-1] < alone[0]
    for rank in range(4):
        shared = re.findall(rf"^\[worker {rank}\] loss (\S+)$", workers, re.MULTILINE)
        assert [float(loss) for loss in shared] == pytest.approx(alone, abs=2e-5)


def test_the_program_is_the_example():
    example = (ROOT / "examples/mnist.cpp").read_text()
    assert example.endswith(block("`main.cpp`:", "cpp"))


IGNORING = """
#include "muster/train/model.h"
void ignore(muster::train::Model& model, muster::nn::Cell& cell, const muster::train::TrainOptions& options) {
  model.train(options);
  cell.place("GPU", 99);
}
"""


def test_an_error_that_a_program_ignores_is_a_warning_of_its_compiler(tmp_path):
    (tmp_path / "main.cpp").write_text(IGNORING)
    command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{BUILD}/generated", "main.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    warnings = re.findall(r"main.cpp:(\d+):.* warning: ignoring returned value of type", done.stderr)
    assert warnings == ["4", "5"]
