"""The public table of trials: what a search could have found, collected with the system itself, in parts that add up.

    python benchmarks/table.py --minutes 60             trains for an hour, continuing what the folder holds
    python benchmarks/table.py --minutes 60 --draws 500 structures drawn from the whole space instead of the grid
    python benchmarks/table.py --minutes 60 --part 2/3  of three machines the second
    python benchmarks/table.py --merge A/trials.parquet B/trials.parquet
    python benchmarks/table.py --summary                how far it is, what the rest takes, what is best

The order of the rows is the same on every machine. A row is there once it has ended; whatever ends the process loses
at most the steps since the last measurement, and the same command goes on. ``README.md`` beside the table is its card.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from trial_table.card import summary_lines, write_card
from trial_table.collecting import Collection, machine_facts
from trial_table.points import DRAWN, EXHAUSTIVE, planned, share_of
from trial_table.rows import EXAMPLES, TRIALS, read_rows, rows, write_examples, write_rows
from trial_table.setting import TASKS, commit, setting_of

from studies.keeping.progress import Progress
from trial_runner.backbones import EMBEDDED, load_backbone

_FOLDER = Path(__file__).parent / "trials"


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--minutes", type=float, default=0.0, metavar="N", help="train for so long (default 0)")
    add("--task", choices=TASKS, default=TASKS[0], help=f"default {TASKS[0]}")
    add("--data", type=Path, metavar="FOLDER", help="the files of a task that is not embedded")
    add("--folder", type=Path, help="of the table (default benchmarks/trials/TASK)")
    add("--draws", type=int, default=0, metavar="N", help="the first N draws of the whole space, not the grid")
    add("--part", type=_part, default=(1, 1), metavar="I/N", help="of N machines the I-th (default 1/1)")
    add("--pack", default="1", metavar="N", help="trials in a pass, or auto (default 1)")
    add("--merge", type=Path, nargs="+", default=[], metavar="FILE", help="take the rows of other tables in")
    add("--summary", action="store_true", help="print how far the table is")
    arguments = parser.parse_args(words)
    if not (arguments.minutes > 0 or arguments.merge or arguments.summary):
        parser.error("--minutes must be above 0, or --merge or --summary given.")
    if arguments.task != TASKS[0] and arguments.data is None:
        parser.error(f"--data must be the folder of the task's files; {arguments.task} is not embedded.")
    if missing := [str(file) for file in arguments.merge if not file.is_file()]:
        parser.error(f"--merge must name files; got {', '.join(missing)}.")
    arguments.folder = arguments.folder or _FOLDER / arguments.task
    return arguments


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"must be such as 2/3; got {text}.")
    return int(part), int(parts)


def merge(folder: Path, files: list[Path]) -> None:
    """Take the rows of other tables in, and what lies beside them example by example."""
    write_rows(folder, [row for file in (folder / TRIALS, *files) for row in read_rows(file)])
    write_examples(folder, [row for file in files for row in read_rows(file.with_name(EXAMPLES))])


class _Shown:
    """Says how many rows of a portion there are, whenever there are more."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, progress: Progress) -> None:
        ended = sum(count for state, count in progress.counts.items() if state.is_terminal)
        words = f"{progress.study}: {ended} of {progress.target_trials} rows"
        if words != self._said:
            self._said = words
            print(words, file=sys.stderr, flush=True)


def main() -> None:
    arguments = arguments_of()
    folder: Path = arguments.folder
    setting = setting_of(
        arguments.task,
        folder,
        backbone_sha256=load_backbone(EMBEDDED).weights_sha256,
        data=arguments.data,
        pack=arguments.pack,
    )
    grid = planned(setting, EXHAUSTIVE)
    if arguments.merge:
        merge(folder, arguments.merge)
    if arguments.minutes > 0:
        drawn = planned(setting, DRAWN, arguments.draws)
        facts = machine_facts(setting.specification.training.precision, commit())
        collection = Collection(setting=setting, folder=folder, facts=facts, observer=_Shown())
        own = share_of(drawn if arguments.draws else grid, *arguments.part)
        collection.collect(own, seconds=60 * arguments.minutes, everything=[*grid, *drawn])
    table = rows(folder)
    if arguments.merge or arguments.minutes > 0:
        write_card(folder, table, grid, setting)
    for line in summary_lines(table, grid, setting):
        print(line)


if __name__ == "__main__":
    main()
