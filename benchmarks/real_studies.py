"""Real studies: what a search recommends beside the best published method of the same study, on test data.

    python benchmarks/real_studies.py --minutes 60                      docstrings, every sampler, 26 trials
    python benchmarks/real_studies.py --minutes 60 --trials 100 --samplers factored
    python benchmarks/real_studies.py --minutes 60 --data sst2=FOLDER --data banking77=FOLDER
    python benchmarks/real_studies.py                                   prints what there is
    python benchmarks/real_studies.py --luck                            how alike trials are in what they get right

Every study is launched with its sampler and seed alone different, at 0.5% of the embedded backbone, measured on all
validation examples. What it recommends, the first of its leaderboard, and the best published method at the rates the
study found for it are then trained with fresh seeds and measured on the test split. Studies and confirmations lie in a
database below --folder; whatever ends the process, the same command goes on.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from search_arms.statistics import Interval, mean

import deltaspace
from studies.confirming.results import confirmation_results
from studies.confirming.verdicts import Comparison
from studies.queries.estimates import Estimate
from studies.queries.ranking import Ranking, ranking_of
from studies.records import TrialRecord, TrialState
from studies.search.collapse import COLLAPSED
from studies.search.factored.distances import Array
from studies.specification import Specification, specification_of
from studies.store.ledger import Ledger

_PUBLISHED = ("mam_adapter", "lora_qv", "lora_ffn", "scaled_parallel_adapter_ffn", "prefix_tuning", "head_only")
SAMPLERS = ("random", "tpe", "factored")
"""The first one is the baseline: uniform over structures."""

_FOLDER = Path(__file__).parent / "real_studies"
_MARGIN = 60.0
"""Seconds that must be left for another study to be begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One study of the benchmark."""

    task: str
    sampler: str
    trials: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.task}-{self.sampler}-{self.trials}-s{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a study.

    Attributes:
        recommended: The first of its leaderboard.
        published: The best published method of its leaderboard.
        lead: What the study expects between its best discovery and its best published method.
        score: Mean of the recommended on the test split, in points.
        comparison: Of the two on the test split; None where the recommended is published itself.
        finished: Discoveries that ran to the end, of all.
        collapsed: Trials that were stopped since they had collapsed.
        proposed: Trials, replicates not counted.
    """

    plan: Plan
    recommended: TrialRecord
    published: TrialRecord
    lead: Estimate | None
    score: float
    comparison: Comparison | None
    finished: tuple[int, int]
    collapsed: int
    proposed: int

    @property
    def gain(self) -> float:
        """Points of 100 that the recommended is better on the test split; 0 where it is a published method."""
        return 0.0 if self.comparison is None else 100 * (self.comparison.difference or 0.0)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--minutes", type=float, default=0.0, metavar="N", help="work for so long (default 0: print)")
    add("--data", type=_named_folder, action="append", default=[], metavar="TASK=FOLDER", help="files of a task")
    add("--samplers", nargs="+", choices=SAMPLERS, default=SAMPLERS)
    add("--trials", nargs="+", type=int, default=[26], metavar="N", help="of a study (default 26)")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N", help="of the studies (default 0 1 2)")
    add("--confirm-seeds", type=int, default=8, metavar="N", help="fresh seeds of each contender (default 8)")
    add("--folder", type=Path, default=_FOLDER, help="of the database (default benchmarks/real_studies)")
    add("--luck", action="store_true", help="print how the right answers of complete trials correlate")
    return parser.parse_args(words)


def _named_folder(text: str) -> tuple[str, Path]:
    task, _, folder = text.partition("=")
    if not task or not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(f"must be a task and a folder, such as sst2=DATA; got {text}.")
    return task, Path(folder)


def plans_of(arguments: argparse.Namespace) -> list[Plan]:
    """Short studies first, and of these every sampler with one seed before the next seed."""
    tasks = ["docstrings", *(task for task, _ in arguments.data)]
    return [
        Plan(task=task, sampler=sampler, trials=trials, seed=seed)
        for trials in arguments.trials
        for seed in arguments.seeds
        for task in tasks
        for sampler in arguments.samplers
    ]


def specification_for(plan: Plan, data: Mapping[str, Path], folder: Path) -> Specification:
    """The shipped study file of the task; what differs between the samplers is the sampler alone."""
    task_folder = {} if plan.task not in data else {"task.folder": str(data[plan.task].absolute())}
    overrides: dict[str, object] = {
        "name": plan.name,
        "backbone": "embedded",
        "budget": "0.5%",
        "trials": plan.trials,
        "seed": plan.seed,
        "task.validation_examples": None,
        "pruning": {},
        "search": {"sampler": plan.sampler, "published": list(_PUBLISHED)},
        "fleet": {"backend": "inline", "workers": 1, "pack": 4, "artefacts": str(folder.absolute() / "artefacts")},
        **task_folder,
    }
    return specification_of(plan.task, overrides)


def run(specification: Specification, storage: str, *, seeds: int, until: float) -> bool:
    """Launch or continue a study and its confirmation, until they have ended, the time is up or the user stops it.

    Returns:
        Whether nothing is left of them.
    """
    study = deltaspace.launch(_with_time(specification, until), storage=storage, progress=False)
    with Ledger.open(storage, read_only=True) as ledger:
        ranking = _ended(ledger, specification.name, specification.trials)
    if ranking is None:
        return False
    if ranking.best is None:
        return True
    against = () if ranking.best.method is not None else _published(ranking).method or ()
    budget = f"{max(1, int(until - time.monotonic()))}s"
    return study.confirm(top=1, seeds=seeds, against=against, progress=False, time_budget=budget).is_finished


def _with_time(specification: Specification, until: float) -> Specification:
    return specification_of(specification, {"fleet.time_budget": f"{max(1, int(until - time.monotonic()))}s"})


def _ended(ledger: Ledger, name: str, trials: int) -> Ranking | None:
    """The ranking of a study whose trials have all ended; None of one that must be continued."""
    study = ledger.study(name)
    records = ledger.trials(study.id)
    if len(records) < trials or not all(trial.state.is_terminal for trial in records):
        return None
    return ranking_of(ledger, study, records)


def _published(ranking: Ranking) -> TrialRecord:
    return next(trial for trial in ranking.trials if trial.method is not None)


def outcomes(storage: str, plans: Sequence[Plan]) -> Iterator[Outcome]:
    """What those studies of a database say that have ended and, where it must be, are confirmed."""
    with Ledger.open(storage, read_only=True) as ledger:
        known = {study.name for study in ledger.studies()}
        for plan in plans:
            ranking = _ended(ledger, plan.name, plan.trials) if plan.name in known else None
            if ranking is not None and ranking.best is not None:
                yield from _outcome(ledger, plan, ranking, ranking.best)


def _outcome(ledger: Ledger, plan: Plan, ranking: Ranking, best: TrialRecord) -> Iterator[Outcome]:
    found = next(iter(confirmation_results(ledger, plan.name)), None)
    comparison = next(iter(found.comparisons), None) if found else None
    discoveries = [trial for trial in ranking.trials if trial.method is None]
    records = ledger.trials(ledger.study(plan.name).id)
    if found is not None and found.is_finished and (spread := found.winner.spread) is not None:
        yield Outcome(
            plan=plan,
            recommended=best,
            published=_published(ranking),
            lead=ranking.estimates.lead.difference if ranking.estimates and ranking.estimates.lead else None,
            score=100 * spread.mean,
            comparison=comparison,
            finished=(sum(one.state is TrialState.COMPLETE for one in discoveries), len(discoveries)),
            collapsed=sum(COLLAPSED in (trial.reason or "") for trial in records),
            proposed=sum(trial.replicate_of is None for trial in records),
        )


def table_lines(found: Sequence[Outcome]) -> Iterator[str]:
    """Every study in a line, then every sampler in a line with its difference from the first."""
    yield "points of the recommended trial above the best published method of its study, on the test split"
    head = f"{'study':<28} {'by estimate':>15} {'on test':>8} {'95% interval':>16} {'p':>7} {'score':>6}"
    yield f"{head}  finished  recommended | best published"
    yield from map(_line, found)
    yield f"{sum(one.collapsed for one in found)} of {sum(one.proposed for one in found)} trials collapsed"
    groups: dict[tuple[str, int], dict[str, list[Outcome]]] = {}
    for one in found:
        groups.setdefault((one.plan.task, one.plan.trials), {}).setdefault(one.plan.sampler, []).append(one)
    for (task, trials), by_sampler in groups.items():
        yield ""
        yield f"{task}, {trials} trials: means over studies, and the score less that of {SAMPLERS[0]}, seed by seed"
        yield f"{'sampler':<12} {'studies':>7} {'better':>7} {'points above best':>18} {'score':>14} {'difference':>14}"
        baseline = {one.plan.seed: one.score for one in by_sampler.get(SAMPLERS[0], ())}
        for sampler, those in by_sampler.items():
            pairs = [one.score - baseline[one.plan.seed] for one in those if one.plan.seed in baseline]
            better = sum(one.gain > 0 for one in those)
            gain, score = mean([one.gain for one in those]), mean([one.score for one in those])
            yield (
                f"{sampler:<12} {len(those):>7} {better:>7} {_number(gain, '+'):>18} {_number(score):>14}"
                f" {_number(mean(pairs), '+') if pairs and sampler != SAMPLERS[0] else '':>14}"
            )


def _line(one: Outcome) -> str:
    lead = "" if one.lead is None else f"{100 * one.lead.mean:+.1f} ± {100 * one.lead.reach:.1f}"
    if one.comparison is None or one.comparison.low is None or one.comparison.high is None:
        tested = f"{one.gain:>+8.1f} {'':>16} {'':>7}"
    else:
        interval = f"{100 * one.comparison.low:+.1f} to {100 * one.comparison.high:+.1f}"
        tested = f"{one.gain:>+8.1f} {interval:>16} {one.comparison.p_value or 0.0:>7.3f}"
    finished = "{}/{}".format(*one.finished)
    what = one.recommended.method or one.recommended.description
    return f"{one.plan.name:<28} {lead:>15} {tested} {one.score:>6.1f}  {finished:<8}  {what} | {one.published.method}"


def _number(found: Interval, sign: str = "") -> str:
    width = found.high - found.value
    return f"{found.value:{sign}.2f}" + (f" ± {width:.2f}" if width > 0 else "")


def luck_lines(storage: str, plans: Sequence[Plan]) -> Iterator[str]:
    """The mean correlation of what two complete trials of a study get right, at every rung.

    What all trials get right or wrong together says nothing of which is better, so it is no noise between them.
    """
    yield f"{'study':<28} {'step':>5} {'trials':>6} {'correlation':>11} {'binomial error':>14} {'between trials':>14}"
    with Ledger.open(storage, read_only=True) as ledger:
        known = {study.name: study.id for study in ledger.studies()}
        for plan in plans:
            if plan.name in known:
                yield from _luck(ledger, plan.name, known[plan.name])


def _luck(ledger: Ledger, name: str, study_id: int) -> Iterator[str]:
    complete = {trial.number for trial in ledger.trials(study_id, states=[TrialState.COMPLETE])}
    by_step: dict[int, list[Array]] = {}
    for one in ledger.examples(study_id):
        if one.trial in complete and one.correct is not None:
            by_step.setdefault(one.step, []).append(one.scores)
    for step, rows in sorted(by_step.items()):
        right = np.stack(rows)
        share, examples = float(right.mean()), right.shape[1]
        alike = float(np.corrcoef(right)[np.triu_indices(len(rows), 1)].mean()) if len(rows) > 1 else math.nan
        error = math.sqrt(share * (1 - share) / examples)
        yield (
            f"{name:<28} {step:>5} {len(rows):>6} {alike:>11.2f} {100 * error:>14.2f}"
            f" {100 * error * math.sqrt(1 - alike):>14.2f}"
        )


def main() -> None:
    arguments = arguments_of()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    storage = f"sqlite:///{arguments.folder.absolute() / 'deltaspace.db'}"
    until = time.monotonic() + 60 * arguments.minutes
    data = dict(arguments.data)
    plans = plans_of(arguments)
    for plan in plans:
        if until - time.monotonic() > _MARGIN:
            print(plan.name, file=sys.stderr, flush=True)
            specification = specification_for(plan, data, arguments.folder)
            if not run(specification, storage, seeds=arguments.confirm_seeds, until=until):
                break
    if not (arguments.folder / "deltaspace.db").is_file():
        raise SystemExit("there must be studies to print; got none. Run with --minutes.")
    for line in luck_lines(storage, plans) if arguments.luck else table_lines(list(outcomes(storage, plans))):
        print(line)


if __name__ == "__main__":
    main()
