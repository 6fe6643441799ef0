"""What anybody may hand in, damaged at random: study files, command lines, exports, snapshots and databases.

    python benchmarks/fuzz.py                          20,000 study files, 5,000 command lines, 5,000 damaged files
    python benchmarks/fuzz.py --cases 200 --seed 7     so many of each, from another seed
    python benchmarks/fuzz.py --only lines             one kind: files, lines, exports, snapshots, databases or servers

Nothing may end in an exception that is no error of ours, take more than five seconds, or a gigabyte. What does is
printed with its seed and number, and ``--case N`` repeats it.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
for folder in (ROOT / "tests", ROOT, ROOT / "benchmarks"):
    sys.path.insert(0, str(folder))

from support import rotation  # noqa: E402

rotation.begin()  # what tests share out over their runs is read when they are imported

from fuzz_arms.damaged import Databases, Exports, Servers, Snapshots  # noqa: E402
from fuzz_arms.lines import Lines  # noqa: E402
from fuzz_arms.study_files import StudyFiles  # noqa: E402

KINDS: dict[str, tuple[Callable[[Path], Callable[[random.Random], object]], int]] = {
    "files": (StudyFiles, 20_000),
    "lines": (Lines, 5_000),
    "exports": (Exports, 2_000),
    "snapshots": (Snapshots, 2_000),
    "databases": (Databases, 1_000),
    "servers": (Servers, 300),
}
MOST_SECONDS, MOST_GIGABYTES = 5.0, 1.0
_MEMORY = Path("/dev/shm")
"""Where files are rewritten thousands of times at no cost, if there is such a place."""


def gigabytes() -> float:
    """The most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def problem(case: Callable[[random.Random], object], seed: str) -> str:
    """What is wrong with how a case ended; empty if nothing is."""
    began_at, held = time.perf_counter(), gigabytes()
    cpu = time.process_time()
    try:
        case(random.Random(seed))
    except Exception:  # noqa: BLE001 - this is what is looked for
        return traceback.format_exc(limit=-4)
    if time.process_time() - cpu > MOST_SECONDS:
        return f"it took {time.perf_counter() - began_at:.1f} s"
    return f"it took {gigabytes() - held:.1f} GB" if gigabytes() - held > MOST_GIGABYTES else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--only", choices=KINDS, nargs="*", default=list(KINDS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    failures = 0
    for name in given.only:
        kind, usual = KINDS[name]
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            os.chdir(folder)
            case = kind(Path(folder))
            numbers = range(given.cases or usual) if given.case is None else [given.case]
            began_at, found = time.perf_counter(), 0
            for number in numbers:
                told = problem(case, f"{given.seed}/{name}/{number}")
                if told:
                    found += 1
                    print(f"{name}, seed {given.seed}, case {number}: {told}", flush=True)
            os.chdir(ROOT)
        seconds = time.perf_counter() - began_at
        print(
            f"{name}: {len(numbers):,} cases, seed {given.seed}, {found} problems, {seconds:.0f} s, "
            f"{gigabytes():.2f} GB at most",
            flush=True,
        )
        failures += found
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
