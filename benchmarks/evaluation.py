"""What measuring trials takes of a search: at the rungs, and after the last step.

    python benchmarks/evaluation.py                 the shipped example, 12 trials an arm, about three minutes
    python benchmarks/evaluation.py --trials 60     the whole of it
    python benchmarks/evaluation.py --told a.db     what fewer examples would have told

The arms are the same study with ``pruning.examples: all``, which measures the whole validation split at every rung, and
``auto``. One process, packs as they are by default; seconds are those of the processor, so that others may use the
machine. Proposals, the ledger and files are in neither part.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

from scipy.stats import spearmanr

from studies.launching.launch import launch
from studies.specification import Specification, parse_override, specification_of
from studies.store.ledger import Ledger
from trial_runner.packs.pack import TrialPack
from trial_runner.tasks.splitting import some_rows

ARMS = ("all", "auto")
AIM = 0.10


@dataclass
class Spent:
    """Seconds of the processor.

    Attributes:
        training: In steps.
        rungs: In measurements before the last step of a trial.
        last: In those after it.
    """

    training: float = 0.0
    rungs: float = 0.0
    last: float = 0.0

    def line(self, arm: str) -> str:
        """The arm as it is printed."""
        whole = self.training + self.rungs + self.last
        share = self.rungs / whole
        met = "" if share <= AIM else "  MISSED"
        return (
            f"examples: {arm:<6} {whole:7.1f} s, of it at rungs {share:6.1%} (aim {AIM:.0%}{met}), "
            f"after the last step {self.last / whole:6.1%}"
        )


@contextmanager
def counting() -> Iterator[Spent]:
    """Count what packs do within the block."""
    spent = Spent()

    def counted(method: Callable[..., Any], add: Callable[[float, tuple[Any, ...]], None]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments)
            finally:
                add(time.process_time() - began, arguments)

        return call

    def trained(seconds: float, _: object) -> None:
        spent.training += seconds

    def measured(seconds: float, arguments: tuple[Any, ...]) -> None:
        *_, is_final, _ = arguments
        if is_final:
            spent.last += seconds
        else:
            spent.rungs += seconds

    with (
        patch.object(TrialPack, "_train", counted(TrialPack._train, trained)),
        patch.object(TrialPack, "_metrics", counted(TrialPack._metrics, measured)),
    ):
        yield spent


def study(name: str, arm: str, trials: int, settings: list[str]) -> Specification:
    """The study of an arm."""
    own = [f"pruning.examples={arm}", f"trials={trials}", "fleet.backend=inline", "search.replicates=0"]
    return specification_of(name, dict(parse_override(setting) for setting in (*own, *settings)))


def told(path: str, few: int) -> Iterator[str]:
    """How the loss at every rung ranks the final scores of complete trials: of all examples, and of some."""
    with Ledger.open(f"sqlite:///{path}", read_only=True) as ledger:
        for study in ledger.studies():
            complete = {one.number: one.score for one in ledger.trials(study.id) if one.score is not None}
            by_step: dict[int, dict[int, Any]] = {}
            for one in ledger.examples(study.id):
                by_step.setdefault(one.step, {})[one.trial] = one.negated_losses
            for step, losses in sorted(by_step.items())[:-1]:
                trials = [number for number in complete if number in losses]
                whole = len(losses[trials[0]])
                scores = [complete[number] for number in trials]
                ranks = [
                    spearmanr([losses[number][some_rows(whole, most)].mean() for number in trials], scores).statistic
                    for most in (whole, few)
                ]
                yield (
                    f"{study.name}: {len(trials)} trials, step {step}: {ranks[0]:.3f} of {whole} examples, "
                    f"{ranks[1]:.3f} of {few}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", default="docstrings", help="a shipped study or a file (docstrings)")
    parser.add_argument("--trials", type=int, default=12, help="of each arm (default 12)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of deltaspace launch")
    parser.add_argument("--told", nargs="+", default=[], metavar="LEDGER", help="look at files of SQLite instead")
    parser.add_argument("--few", type=int, default=400, help="examples at a rung for --told (default 400)")
    given = parser.parse_args()
    for path in given.told:
        for line in told(path, given.few):
            print(line)
    if given.told:
        return
    for arm in ARMS:
        with tempfile.TemporaryDirectory(prefix="evaluation-") as folder, counting() as spent:
            own = [*given.set, f"fleet.artefacts={Path(folder) / 'artefacts'}"]
            specification = study(given.study, arm, given.trials, own)
            launch(specification, storage_url=f"sqlite:///{Path(folder) / 'ledger.db'}")
        print(spent.line(arm), flush=True)


if __name__ == "__main__":
    main()
