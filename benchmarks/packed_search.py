"""The search itself with packs and without: the embedded study, launched in turns, its time and its best score.

    python benchmarks/packed_search.py                       --pack auto against --pack 1, two launches each
    python benchmarks/packed_search.py --trials 8 --rounds 1  shorter

Every launch is ``deltaspace launch`` in a process of its own, with a storage of its own; start and end count. Scores
need not agree: workers that go at another pace propose and prune other trials.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_COMMAND = Path(sys.executable).with_name("deltaspace")
_ENDED = ("complete", "pruned", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch of the study.

    Attributes:
        pack: What ``--pack`` was.
        seconds: From start to end.
        trials: How many trials ended, however they did.
        score: The best.
    """

    pack: str
    seconds: float
    trials: int
    score: float

    def text(self) -> str:
        """The launch as it is printed."""
        return (
            f"--pack {self.pack:<5} {self.seconds:>8.1f} s {self.trials:>5} trials "
            f"{3600 * self.trials / self.seconds:>8.0f} trials/h   best {self.score:.4f}"
        )


def launched(pack: str, study: str, settings: Sequence[str]) -> Launch:
    """Launch the study in a new folder.

    Raises:
        RuntimeError: If the launch fails.
    """
    with tempfile.TemporaryDirectory(prefix="packed-search-") as folder:
        own = ["--storage", f"sqlite:///{Path(folder) / 'study.db'}"]
        own += ["--set", f"fleet.artefacts={Path(folder) / 'artefacts'}"]
        began_at = time.perf_counter()
        done = subprocess.run(
            [_COMMAND, "launch", study, "--pack", pack, "--quiet", "--json", *own, *settings],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began_at
    if done.returncode:
        raise RuntimeError(f"deltaspace launch must succeed; it said: {done.stderr.strip().splitlines()[-1:]}")
    summary = json.loads(done.stdout)["leaderboard"]["summary"]
    ended = sum(summary["counts"].get(state, 0) for state in _ENDED)
    return Launch(pack=pack, seconds=seconds, trials=ended, score=summary["best"]["score"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="docstrings", help="a study file or a shipped example (default docstrings)")
    parser.add_argument("--pack", default="auto", help="slots of a pack (default auto)")
    parser.add_argument("--against", default="1", help="the other --pack (default 1)")
    parser.add_argument("--trials", help="of the study (default: as in its file)")
    parser.add_argument("--rounds", type=int, default=2, help="launches of each (default 2)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="handed to deltaspace launch")
    arguments = parser.parse_args()
    settings = [word for one in arguments.set for word in ("--set", one)]
    settings += [] if arguments.trials is None else ["--trials", arguments.trials]
    print(f"{arguments.study}, {os.cpu_count()} cores, load {' '.join(f'{one:.1f}' for one in os.getloadavg())}")
    seconds: dict[str, list[float]] = {arguments.pack: [], arguments.against: []}
    for index in range(arguments.rounds):
        # the one that goes first changes, so that a machine that gets slower favours neither
        for pack in list(seconds)[:: 1 if index % 2 == 0 else -1]:
            launch = launched(pack, arguments.study, settings)
            seconds[pack].append(launch.seconds)
            print(launch.text(), flush=True)
    packed, other = (statistics.median(seconds[pack]) for pack in (arguments.pack, arguments.against))
    aim = "" if other > packed else "  MISSED"
    print(f"--pack {arguments.pack} is {other / packed:.2f}x as fast as --pack {arguments.against}   > 1{aim}")


if __name__ == "__main__":
    main()
