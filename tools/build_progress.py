"""Adds to ninja's progress how long the rest will take, which ninja 1.11 does not say (1.12 has %W).

Reads the lines of a ninja whose NINJA_STATUS is STATUS, "[12 of 500, 30.1 s] ", and prints them as
"[12 of 500, 2 %, 30 s, about 1 min left] ": on a terminal on one line, as ninja does.
"""

import re
import shutil
import sys

STATUS = "[%f of %t, %e s] "  # finished, of all, since the start: as NINJA_STATUS in ./dev
LINE = re.compile(r"\[(\d+) of (\d+), ([\d.]+) s\] (.*)", re.DOTALL)
TOLD_FROM = 10  # seconds; before, an estimate says nothing


def shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def with_estimate(line: str) -> tuple[str, bool]:
    """The line as people see it, and whether it is progress, which the next such line may replace."""
    found = LINE.fullmatch(line)
    if not found:
        return line, False
    done, total, elapsed = int(found[1]), int(found[2]), float(found[3])
    parts = [f"{done} of {total}", f"{100 * done // max(total, 1)} %", shown(elapsed)]
    if done and done < total and elapsed >= TOLD_FROM:
        parts.append(f"about {shown(elapsed * (total - done) / done)} left")
    return f"[{', '.join(parts)}] {found[4]}", True


def main() -> None:
    is_terminal = sys.stdout.isatty()
    is_open = False  # a line of progress stands on the terminal, to be replaced
    for raw in sys.stdin:
        line, is_progress = with_estimate(raw.rstrip("\n"))
        if is_terminal and is_progress:
            print(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        else:
            print(f"\n{line}" if is_open else line, flush=True)
        is_open = is_terminal and is_progress
    if is_open:
        print()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # ninja gets it too, and says so
        sys.exit(130)
