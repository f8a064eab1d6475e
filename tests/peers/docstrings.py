"""The examples of MindSpore's docstrings, run by MindSpore and by Muster.

python docstrings.py sources FILE          with a Python that has mindspore 2.7.0: the examples of all names
python docstrings.py answers FILE OUT      with the same: what they give
python docstrings.py compare FILE          with Muster's mindspore on PYTHONPATH: prints which names differ
"""

import doctest
import importlib
import inspect
import json
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "parity/programs"
# Whose names have examples; of a name that stands in several with one docstring, the first.
OWNERS = """
mindspore mindspore.amp mindspore.nn mindspore.ops mindspore.mint mindspore.mint.nn
mindspore.mint.nn.functional mindspore.mint.linalg mindspore.mint.optim mindspore.mint.special
mindspore.numpy mindspore.train mindspore.dataset mindspore.dataset.vision mindspore.dataset.transforms
mindspore.dataset.text mindspore.common.initializer mindspore.experimental.optim
mindspore.experimental.optim.lr_scheduler mindspore.mindrecord mindspore.communication mindspore.log
mindspore.Tensor mindspore.Parameter mindspore.Model mindspore.nn.Cell mindspore.nn.CellList
mindspore.nn.SequentialCell mindspore.nn.Optimizer mindspore.dataset.Dataset mindspore.train.Callback
"""


def find(name):
    """What stands at a dotted path."""
    try:
        return importlib.import_module(name)
    except ImportError:
        owner, _, member = name.rpartition(".")
        return getattr(find(owner), member)


def examples(name):
    """The statements, without those that show how something fails."""
    words = inspect.getdoc(find(name)) or ""
    try:
        found = doctest.DocTestParser().get_examples(words)
    except ValueError:
        return []
    return [each.source for each in found] if not any(each.exc_msg for each in found) else []


def public(name):
    owner = find(name)
    return sorted(
        set(each for each in dir(owner) if not each.startswith("_")) | set(getattr(owner, "__all__", ()))
    )


def write_sources(file):
    found = {}
    seen = set()
    for owner in OWNERS.split():
        for member in public(owner):
            name = f"{owner}.{member}"
            try:
                sources = examples(name)
            except (AttributeError, ImportError, TypeError):
                continue
            key = (member, "".join(sources))
            if sources and key not in seen:
                seen.add(key)
                found[name] = sources
    Path(file).write_text(json.dumps(found))


def answers(sources, seed="1"):
    sys.path.insert(0, str(PROGRAMS))
    import run

    return run.answers(sys.executable, [f"statements({each!r})" for each in sources], seed)


def masked(one, other):
    """What two runs with different seeds agree on."""
    from answers import agree

    if agree(one, other):
        return one
    if (
        isinstance(one, list)
        and isinstance(other, list)
        and len(one) == len(other)
        and one[0] in ("[", "(")
        and one[0] == other[0]
    ):
        return [one[0], *map(masked, one[1:], other[1:])]
    return ["any"]


def write_answers(file, out):
    found = json.loads(Path(file).read_text())
    first, second = answers(found.values()), answers(found.values(), seed="2")
    kept = {
        name: [sources, masked(one, other)]
        for (name, sources), one, other in zip(found.items(), first, second, strict=True)
        if one[0] != "E" and other[0] != "E"
    }
    print(f"{len(found)} names with examples, {len(kept)} run")
    Path(out).write_text(json.dumps(kept))


def same(one, other):
    from answers import agree

    if one == ["any"]:
        return True
    if isinstance(one, list) and one[:1] in (["["], ["("]) and "any" in json.dumps(one):
        return (
            isinstance(other, list)
            and len(one) == len(other)
            and one[0] == other[0]
            and all(map(same, one[1:], other[1:]))
        )
    return agree(one, other)


def is_provided(name):
    """Not what can be imported and says at its use why it is not there."""
    from muster._check import provided

    return provided.is_provided(name)


def compare(file):
    """{name: [sources, MindSpore's, Muster's]} of what differs, and of how many."""
    kept = json.loads(Path(file).read_text())
    provided = {name: each for name, each in kept.items() if is_provided(name)}
    given = answers(sources for sources, _ in provided.values())
    differing = {
        name: [sources, one, other]
        for (name, (sources, one)), other in zip(provided.items(), given, strict=True)
        if not same(one, other)
    }
    return kept, provided, differing


def main(command, file, *out):
    if command == "sources":
        write_sources(file)
    elif command == "answers":
        write_answers(file, *out)
    else:
        kept, provided, differing = compare(file)
        for name, each in differing.items():
            print(json.dumps([name, *each]))
        equal = len(provided) - len(differing)
        share = f"{100 * equal / len(provided):.1f} %"
        print(
            f"{len(kept)} names, {len(provided)} provided, {equal} equal: {share}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
