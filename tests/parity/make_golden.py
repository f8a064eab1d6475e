"""Records what MindSpore 2.7.0 gives for the cases of cases.py, one small file for each, in golden/.

Run it with the Python of a venv of its own (pip install mindspore==2.7.0 numpy==1.26.4):
    venv/bin/python tests/parity/make_golden.py [part of a name ...]
A case that MindSpore cannot run is listed and gets no file, unless references.py has figures for it, which
take the place of MindSpore's.
"""

import json
import sys
from pathlib import Path

import mindspore as ms

sys.path.insert(0, str(Path(__file__).parent))
import cases
import references

GOLDEN = Path(__file__).parent / "golden"


def written(figures):
    """Eight digits of each number, which float32 needs at most one more of."""
    made = {}
    for name, values in figures.items():
        flat = [float(f"{value:.9g}") for value in values.reshape(-1)]
        made[name] = {"shape": list(values.shape), "values": flat}
    return made


def main(wanted):
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    failed = []
    for name, case in cases.all_cases().items():
        if wanted and not any(part in name for part in wanted):
            continue
        path = GOLDEN / f"{name}.json"
        recorded = {"from": f"mindspore {ms.__version__}", "figures": {}}
        try:
            recorded["figures"] = written(case.run(ms))
        except Exception as error:  # the list says which and why
            if name not in references.REFERENCES:
                failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
                continue
        if name in references.REFERENCES:
            recorded["float64 decides"], reference = references.REFERENCES[name]
            recorded["figures"].update(written(reference()))
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(recorded, separators=(",", ":"))
        path.write_text(text.replace('},"', '},\n"') + "\n")
    print("\n".join(failed) or "all cases ran")


if __name__ == "__main__":
    main(sys.argv[1:])
