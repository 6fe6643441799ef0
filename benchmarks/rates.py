"""How often a proposal collapses: structures, sizes and rates drawn uniformly from the space, trained to the end.

    python benchmarks/rates.py --folder OUT --minutes 10                          docstrings, which is embedded
    python benchmarks/rates.py --folder OUT --minutes 10 --task sst2 --data FOLDER
    python benchmarks/rates.py --folder OUT                                       what OUT holds, without training

A trial has collapsed if it ends nearer to the score of always guessing the most frequent label than to the median.
The same command goes on where it stopped; the rows are those of `benchmarks/table.py`, with the default ranges.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from trial_table.collecting import Collection, machine_facts
from trial_table.points import DRAWN, planned
from trial_table.rows import rows
from trial_table.setting import TASKS, Setting, commit, setting_of

from search_space.space.options import LEARNING_RATES
from studies.launching.preparing import prepared
from trial_runner.backbones import EMBEDDED, load_backbone
from trial_runner.tasks import compute

_SIDES = ("attention", "ffn")


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--folder", type=Path, required=True, help="of the rows")
    add("--minutes", type=float, default=0.0, metavar="N", help="train for so long (default 0)")
    add("--draws", type=int, default=60, metavar="N", help="how many (default 60)")
    add("--task", choices=TASKS, default=TASKS[0], help=f"default {TASKS[0]}")
    add("--data", type=Path, metavar="FOLDER", help="the files of a task that is not embedded")
    add("--steps", type=int, metavar="N", help="of a trial, if not as many as the task's study file has")
    return parser.parse_args(words)


def default_setting(task: str, folder: Path, data: Path | None, steps: int | None) -> Setting:
    """A task with the rates that a study searches by default."""
    training = {} if steps is None else {"steps": steps}
    sha256 = load_backbone(EMBEDDED).weights_sha256
    pinned = setting_of(task, folder, backbone_sha256=sha256, data=data, **training)
    space = pinned.specification.space.model_copy(update={"learning_rates": LEARNING_RATES})
    return replace(pinned, specification=pinned.specification.model_copy(update={"space": space}), rates_of="output")


def guessed_score(setting: Setting) -> float:
    """The score of always guessing the label that is most frequent in train."""
    task = prepared(setting.specification)
    labels, true = task.splits["train"].labels, task.splits["validation"].labels
    guess = np.full(len(true), np.bincount(labels).argmax())
    return compute([task.metric], guess, true, classes=len(task.labels))[task.metric]


def collapsed(table: pd.DataFrame, guess: float) -> pd.Series:
    """Which rows ended nearer to a guess than to the median."""
    return table.score < (guess + table.score.median()) / 2


def report(table: pd.DataFrame, guess: float) -> list[str]:
    """The share that collapsed, and each of these with its rates."""
    bad = table[collapsed(table, guess)]
    lines = [
        f"{len(bad)} of {len(table)} draws collapsed ({len(bad) / max(1, len(table)):.1%}); guessing scores "
        f"{guess:.3f}, the median {table.score.median():.3f}, the best {table.score.max():.3f}"
    ]
    for _, row in bad.sort_values("score").iterrows():
        rates = ", ".join(
            f"{side} {row[f'{side}_learning_rate']:.2g}" for side in _SIDES if row[f"{side}_learning_rate"] > 0
        )
        lines.append(f"  {row.score:.3f}  {row.description}: {rates}")
    return lines


def main() -> None:
    arguments = arguments_of()
    setting = default_setting(arguments.task, arguments.folder, arguments.data, arguments.steps)
    if arguments.minutes > 0:
        facts = machine_facts(setting.specification.training.precision, commit())
        drawn = planned(setting, DRAWN, arguments.draws)
        Collection(setting=setting, folder=arguments.folder, facts=facts).collect(drawn, seconds=60 * arguments.minutes)
    print("\n".join(report(rows(arguments.folder), guessed_score(setting))))


if __name__ == "__main__":
    main()
