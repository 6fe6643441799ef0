"""Archive and merge of a study with links in its folder, in processes that are killed."""

import random
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from support.killed_study import finish

from fault_arms.bench import Bench, Case, Outcome, fault_outcome
from fault_arms.forked import start_forked
from studies.ledger.ledger import Ledger
from studies.verification import verify

_TRIALS, _KILLS = 18, 15
_LONGEST_SECONDS = {"archive": 0.5, "merge": 0.3}
_MAIN = "deltaspace.commands.main.main"


def _plant_links(bench: Bench, study_folder: Path) -> list[Path]:
    """Link out of a study's folder, within it, to nothing and in a circle; return the links, relative to the folder.

    The weights of a trial become a link to a file beside them, by its absolute path.
    """
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    weights = sorted(study_folder.glob("trial-*/attempt-*/step-16.json"))[:2]
    (moved := weights[0].with_name("moved.json")).write_bytes(weights[0].read_bytes())
    weights[0].unlink()
    targets = {weights[0]: moved}
    folder = weights[1].parent
    targets |= {folder / "file": outside / "file", folder / "folder": outside, folder / "nothing": outside / "nothing"}
    targets |= {folder / "circle": folder, folder / "itself": folder / "itself"}
    for link, target in targets.items():
        link.symlink_to(target)
    return [path.relative_to(study_folder) for path in (*targets, moved)][1:]


def _run(bench: Bench, words: Sequence[str], kill_after: float | None = None) -> list[str]:
    """Run a command, or kill it; return its problems."""
    log = bench.folder / "command.log"
    process = start_forked(words, log, _MAIN)
    with suppress(subprocess.TimeoutExpired):
        process.wait(kill_after)
    process.kill()
    code, output = process.wait(), log.read_text()
    is_right = "Traceback" not in output and (code == 0 or kill_after is not None)
    return [] if is_right else [f"{words[0]} ended with {code}: {output[-300:]!r}"]


def _linked(bench: Bench, *, seed: int) -> Outcome:
    """Kill an archive and a merge again and again; the last ones must be whole, and files outside untouched."""
    draw, problems = random.Random(seed), []
    study = bench.study("sqlite", "inline", _TRIALS)
    finish(study)
    *planted, moved = _plant_links(bench, study.folder / study.name)
    archive, merged = bench.folder / "archive", f"sqlite:///{bench.folder / 'merged.db'}"
    commands = (
        ["archive", study.name, str(archive), "--yes", "--storage", study.url],
        ["merge", f"sqlite:///{archive / 'deltaspace.db'}", "--storage", merged],
    )
    began_at = time.monotonic()
    for words in commands:
        for _ in range(_KILLS):
            problems += _run(bench, words, draw.uniform(0, _LONGEST_SECONDS[words[0]]))
        problems += _run(bench, words)
    seconds = time.monotonic() - began_at
    with Ledger.open(merged, read_only=True) as ledger:
        folder = ledger.study(study.name).folder
        found = verify(ledger, study.name)
    if len(found) != 1 or "must hold nothing but" not in found[0]:
        problems.append(f"verify must name the links in one line and nothing else; got {found}")
    for link in planted:
        (folder / link).unlink()
    (folder / moved).rename((folder / moved).with_name("step-16.json"))
    if [*bench.folder.glob("outside/*")] != [bench.folder / "outside" / "file"]:
        problems.append("files outside the study's folder must stay as they are")
    study.url = merged
    return fault_outcome(study, [seconds], problems, times=2 * _KILLS)


LINKS = tuple(Case(f"links, seed {seed}", partial(_linked, seed=seed)) for seed in range(2))
