"""Programs and what MindSpore 2.7.0 gives for them: made, recorded, and compared with Muster.

python run.py record PYTHON [FAMILY ...]   PYTHON has mindspore 2.7.0 and numpy 1.26.4; writes answers/
python run.py check [FAMILY ...]           with Muster's mindspore on PYTHONPATH: prints what differs, and why
python run.py test FAMILY                  prints those of them that stand in no list: they agreed before
python run.py accept [FAMILY ...]          writes what does not agree into open.txt: what is to be mended
python run.py list                         the families, and how many programs each has

What depends on the seed is not recorded. What Muster does in another way on purpose stands in ours.tsv.
"""

import hashlib
import json
import lzma
import os
import queue
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

PLACE = Path(__file__).parent
RECORDS = PLACE / "answers"  # a file for each family
OPEN = PLACE / "open.txt"
OURS = PLACE / "ours.tsv"
SECONDS_MAX = 60  # for one program: graphs are compiled


def families():
    return sorted(path.name.partition(".")[0] for path in RECORDS.glob("*.json.xz"))


def recorded(family):
    """[[text, answer], ...]"""
    return json.loads(lzma.decompress((RECORDS / f"{family}.json.xz").read_bytes()))


def keep(family, programs):
    RECORDS.mkdir(exist_ok=True)
    text = json.dumps(programs, separators=(",", ":"))
    (RECORDS / f"{family}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def _lines(process, texts):
    """Lines as they come; None at the end, or when one takes too long."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    for _ in texts:
        try:
            line = lines.get(timeout=SECONDS_MAX)
        except queue.Empty:
            line = None
        if line is None:
            return
        yield line


def answers(python, texts, seed="1"):
    """What each program gives; where a process dies, that is the answer, and another one goes on."""
    given = []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        while len(given) < len(texts):
            command = [python, str(PLACE / "answers.py"), file.name, str(len(given))]
            environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOG_v": "4", "PROGRAMS_SEED": seed}
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
            ) as process:
                for line in _lines(process, texts[len(given) :]):
                    given.append(json.loads(line))
                process.kill()
                words = process.stderr.read()
            if len(given) < len(texts):
                given.append(["E", "Dead", words[-200:]])
    return given


def record(python, names):
    from answers import agree
    from families import FAMILIES

    for name in names or FAMILIES:
        texts = list(dict.fromkeys(FAMILIES[name]()))
        given, again = answers(python, texts), answers(python, texts, seed="2")
        programs = [
            [text, one]
            for text, one, other in zip(texts, given, again, strict=True)
            if not is_error(one) and agree(one, other)
        ]
        keep(name, programs)
        print(f"{name}: {len(texts)} programs, {len(programs)} answered", flush=True)


def is_error(answer):
    return isinstance(answer, list) and answer[:1] == ["E"]


def compared(expected):
    """(kind, text, expected, given) of each program that differs: kind is missing, refused or differs."""
    from answers import MISSING, agree

    given = answers(sys.executable, [text for text, _ in expected])
    for (text, one), other in zip(expected, given, strict=True):
        if is_error(other):
            yield ("missing" if MISSING in other[2] else "refused"), text, one, other
        elif not agree(one, other):
            yield "differs", text, one, other


def mark(text):
    """A program in open.txt."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def still_open():
    """{family: marks of its programs that do not agree yet}"""
    lines = OPEN.read_text().splitlines() if OPEN.exists() else []
    return {line.split()[0]: line.split()[1:] for line in lines}


def is_ours(text, ours):
    return any(re.search(pattern, text) for pattern in ours)


def reasons():
    """{regular expression of programs: why Muster's answer is another}"""
    lines = OURS.read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


def unexpected(family):
    """(kind, text, expected, given) of what does not agree and stands in no list."""
    known, ours = still_open().get(family, ()), reasons()
    for kind, text, one, other in compared(recorded(family)):
        if mark(text) not in known and not is_ours(text, ours):
            yield kind, text, one, other


def check(names, accept=False):
    ours = reasons()
    for name in names or families():
        programs = recorded(name)
        found = [each for each in compared(programs) if not is_ours(each[1], ours)]
        if accept:
            marks = still_open() | {name: sorted(mark(text) for _, text, *_ in found)}
            OPEN.write_text("".join(f"{' '.join([family, *marks[family]])}\n" for family in sorted(marks)))
        for each in [] if accept else found:
            print(json.dumps([name, *each]))
        counts = {kind: sum(each[0] == kind for each in found) for kind in ("differs", "refused", "missing")}
        counted = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"{name}: {len(programs)} programs, {counted}", file=sys.stderr)


def main(command="list", *words):
    sys.path.insert(0, str(PLACE))
    if command == "record":
        record(words[0], words[1:])
    elif command in ("check", "accept"):
        check(words, command == "accept")
    elif command == "test":
        for kind, text, one, other in unexpected(*words):
            print(f"{kind}: MindSpore {one}, Muster {other}\n{textwrap.indent(text, '    ')}")
    else:
        for name in families():
            print(name, len(recorded(name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
