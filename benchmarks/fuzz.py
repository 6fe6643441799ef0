"""Random damage to study files, command lines, exports, snapshots and databases.

    python benchmarks/fuzz.py                          20,000 study files, 5,000 command lines, 5,000 damaged files
    python benchmarks/fuzz.py --cases 200 --seed 7     200 cases of each kind, from another seed
    python benchmarks/fuzz.py --bounds                 inputs that ask for more than is allowed, with seconds and memory
    python benchmarks/fuzz.py --only lines             one kind: files, lines, exports, snapshots, databases or servers

No case may raise an exception other than the errors of this library, or take more than five seconds or one gigabyte.
Cases that do are printed with seed and number; ``--case N`` repeats them.
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

from support import bounded_inputs, rotation  # noqa: E402

rotation.begin()  # modules of tests read the rotation at import

from fuzz_arms.damaged import DamagedDatabases, DamagedExports, DamagedServers, DamagedSnapshots  # noqa: E402
from fuzz_arms.lines import RandomCommands  # noqa: E402
from fuzz_arms.study_files import DamagedStudyFiles  # noqa: E402

KINDS: dict[str, tuple[Callable[[Path], Callable[[random.Random], object]], int]] = {
    "files": (DamagedStudyFiles, 20_000),
    "lines": (RandomCommands, 5_000),
    "exports": (DamagedExports, 2_000),
    "snapshots": (DamagedSnapshots, 2_000),
    "databases": (DamagedDatabases, 1_000),
    "servers": (DamagedServers, 300),
}
MOST_SECONDS, MOST_GIGABYTES = 5.0, 1.0
_MEMORY = Path("/dev/shm")
"""Folder in memory, if it exists, for files that are rewritten thousands of times."""


def gigabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def problem(case: Callable[[random.Random], object], seed: str) -> str:
    """Run a case and describe its problem; empty if it has none."""
    began_at, before = time.perf_counter(), gigabytes()
    cpu = time.process_time()
    try:
        case(random.Random(seed))
    except Exception:  # noqa: BLE001 - the benchmark looks for exceptions
        return traceback.format_exc(limit=-4)
    if time.process_time() - cpu > MOST_SECONDS:
        return f"it took {time.perf_counter() - began_at:.1f} s"
    grown = gigabytes() - before
    return f"it took {grown:.1f} GB" if grown > MOST_GIGABYTES else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this case alone")
    parser.add_argument("--only", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--bounds", action="store_true", help="run the inputs of tests/support/bounded_inputs.py alone")
    arguments = parser.parse_args()
    if arguments.bounds:
        print(*bounded_inputs.lines([]), sep="\n", flush=True)
        return 0
    warnings.simplefilter("ignore")
    failures = 0
    for name in arguments.only:
        kind, default = KINDS[name]
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            os.chdir(folder)
            case = kind(Path(folder))
            numbers = range(arguments.cases or default) if arguments.case is None else [arguments.case]
            began_at, problems = time.perf_counter(), 0
            for number in numbers:
                if text := problem(case, f"{arguments.seed}/{name}/{number}"):
                    problems += 1
                    print(f"{name}, seed {arguments.seed}, case {number}: {text}", flush=True)
            os.chdir(ROOT)
        seconds = time.perf_counter() - began_at
        print(
            f"{name}: {len(numbers):,} cases, seed {arguments.seed}, {problems} problems, {seconds:.0f} s, "
            f"{gigabytes():.2f} GB at most",
            flush=True,
        )
        failures += problems
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
