"""A reader who types what a page says, from top to bottom, in an empty folder of a host of its own.

The folder has what pages take for granted: `train.py` (README's), the digits in MNIST_Data, and the examples.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from snippets import ROOT, Block, page_blocks

sys.path.insert(0, str(ROOT / "tests/python"))

from digits import write_digits
from job import clean_environment
from places import BUILD, SEARCH_PATH

SECONDS_MAX = 120  # for one block, on a busy machine
# Interfaces beside lo, which Open MPI wants, with the addresses that the pages name.
MAKE_HOST = """
ip link set lo up
ip link add eth0 type veth peer name eth1
ip address add 10.0.0.1/24 dev eth0
ip address add 10.0.0.5/24 dev eth0
ip link set eth0 up
ip link set eth1 up
echo made
read -r
"""
OWN_HOST = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-ec", MAKE_HOST]
# Root may be too little: many containers forbid it.
HAS_HOST = subprocess.run(OWN_HOST, input="\n", text=True, capture_output=True).returncode == 0
OWN_ADDRESS = re.compile(r"(?:MS_SCHED_HOST=|--scheduler )10\.0\.0\.")
# A reader waits for what was started with `&`, and looks how it ended.
WAIT = "for each in $(jobs -p); do wait $each; done\n"


@contextlib.contextmanager
def own_host() -> Iterator[list[str]]:
    """What runs a command on a host of its own; its processes end with it.

    Without namespaces it is this host, which does not have the addresses: blocks that need them are left out.
    """
    if not HAS_HOST:
        yield []
        return
    with subprocess.Popen(OWN_HOST, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "made\n"
        inside = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().strip()
        try:
            # --root: of a system that was entered by chroot, too
            yield ["nsenter", "--net", "--pid", "--mount", "--root", f"--target={inside}"]
        finally:
            holder.kill()


class Reader:
    def __init__(self, folder: Path, muster: Path | None = BUILD / "apps/muster/muster") -> None:
        """`muster`: the program of a build; None: the one that PATH has (tests/first_day)."""
        self.folder = folder
        self.programs = folder / ".programs"
        self.script = ""  # the Python of the page so far, each line where the page has it
        self.script_has_run = True
        self.host: list[str] = []
        self.programs.mkdir(parents=True)
        if muster is not None:
            self._add_program("muster", f'exec "{muster}" "$@"')
        (folder / "examples").symlink_to(ROOT / "examples")
        for usage, prefix in (("train", "train"), ("test", "t10k")):
            write_digits(folder / "MNIST_Data" / usage, rows=640, prefix=prefix)
        [example] = [block for block in page_blocks("README.md") if block.file == "train.py"]
        (folder / "train.py").write_text(example.text)

    def follow(self, blocks: list[Block]) -> None:
        with own_host() as self.host:
            for block in blocks:
                if is_for_reader(block):
                    self._take(block)
            if not self.script_has_run:
                self._run(blocks[-1], "python train.py")

    def _take(self, block: Block) -> None:
        check = {"json": json.loads, "toml": tomllib.loads}.get(block.language)
        if check:
            check(block.text)
        if block.file:
            (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.file).write_text(block.text)
        elif block.language == "python":
            self.script += "\n" * (block.line - self.script.count("\n")) + block.text
            self.script_has_run = False
            (self.folder / "train.py").write_text(self.script)
        elif block.language == "setup":
            self._run(block, block.text)
        elif block.language == "sh":
            is_at_once = block.marked("at once") is not None
            self._run(block, (at_once(block.text) if is_at_once else block.text) + WAIT)
        elif block.language == "console":
            for command, expected in commands_of(block.text):
                output = self._run(block, command)
                missing = first_missing(expected, output)
                assert missing is None, (
                    f"{block.where}: no '{missing}' in the output of '{command}':\n{output}"
                )

    def _run(self, block: Block, command: str) -> str:
        for name in (block.marked("stand-in") or "").split():
            self._add_program(name, "[ -t 0 ] || cat >/dev/null")
        self.script_has_run |= "train.py" in command
        environment = clean_environment()
        path = (str(self.programs), SEARCH_PATH)
        environment |= {"PATH": os.pathsep.join(path), "HOME": str(self.folder)}
        output = self.folder / ".output"  # what stays behind with `&` may hold it open
        with output.open("w") as file:
            done = subprocess.run(
                [*self.host, "bash", "-c", f"cd {self.folder}\nset -euo pipefail\n{command}"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=SECONDS_MAX,
            )
        text = output.read_text()
        wanted = int(block.marked("ends with") or 0)
        assert done.returncode == wanted, f"{block.where}: exit code {done.returncode}\n{text}"
        return text

    def _add_program(self, name: str, body: str) -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)


def is_for_reader(block: Block) -> bool:
    if block.marked("not run") is not None or block.marked("run by") is not None:
        return False
    if not HAS_HOST and block.language in ("sh", "setup", "console") and OWN_ADDRESS.search(block.text):
        return False
    return all(shutil.which(name) for name in (block.marked("needs") or "").split())


def at_once(text: str) -> str:
    """The lines side by side."""
    lines = [line.partition("   #")[0].strip() for line in text.splitlines()]
    return "".join(f"{line} &\n" for line in lines if line)


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """What follows each `$ `, and the lines that are expected behind it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip() not in ("", "..."):
            found[-1][1].append(line)
    return found


def first_missing(expected: list[str], output: str) -> str | None:
    """The first line that does not come in its turn; numbers and spaces may differ, `...` is anything."""
    lines = iter(output.splitlines())
    for wanted in expected:
        loose = re.sub(r"(?<![a-z_])[0-9a-f]{16}|[0-9]+(?:\\\.[0-9]+)*", "[0-9a-f.]+", re.escape(wanted))
        pattern = re.sub(r"(?:\\ )+", r"\\s+", loose).replace(r"\.\.\.", ".*")
        if not any(re.match(pattern, line) for line in lines):
            return wanted
    return None
