"""Archive and merge of a study with links in its folder, in processes that are killed."""

import random
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from support.forked_launch import start_forked
from support.killed_study import finish
from support.links import plant_links

from fault_arms.bench import Bench, Case, Outcome, fault_outcome
from studies.ledger.ledger import Ledger
from studies.verification import verify

_TRIALS, _KILLS = 18, 15
_LONGEST_SECONDS = {"archive": 1.2, "merge": 0.8}
_MAIN = "deltaspace.commands.main.main"


def _run(bench: Bench, words: Sequence[str], kill_after: float | None) -> int:
    """Run a command, or kill it; return its exit code.

    Raises:
        RuntimeError: If it ends neither with 0 nor by the kill, or shows a traceback.
    """
    log = bench.folder / "command.log"
    process = start_forked(words, log, _MAIN)
    with suppress(subprocess.TimeoutExpired):
        process.wait(kill_after)
    process.kill()
    code, output = process.wait(), log.read_text()
    if "Traceback" in output or code not in (0, *([] if kill_after is None else [-signal.SIGKILL])):
        raise RuntimeError(f"{words[0]} must end; got {code}: {output[-300:]!r}.")
    return code


def _linked(bench: Bench, *, seed: int) -> Outcome:
    """Kill an archive and a merge later each time until one ends; it must be whole, and files outside untouched."""
    draw, problems, times = random.Random(seed), [], 0
    study = bench.study("sqlite", "inline", _TRIALS)
    finish(study)
    (outside := bench.folder / "outside").mkdir()
    planted = plant_links(study.folder / study.name, outside)
    archive, merged = bench.folder / "archive", f"sqlite:///{bench.folder / 'merged.db'}"
    commands = (
        ["archive", study.name, str(archive), "--yes", "--storage", study.url],
        ["merge", f"sqlite:///{archive / 'deltaspace.db'}", "--storage", merged],
    )
    began_at = time.monotonic()
    for words in commands:
        moments = sorted(draw.uniform(0, _LONGEST_SECONDS[words[0]]) for _ in range(_KILLS))
        times += next(kills for kills, after in enumerate([*moments, None]) if _run(bench, words, after) == 0)
    seconds = time.monotonic() - began_at
    with Ledger.open(merged, read_only=True) as ledger:
        folder = ledger.study(study.name).folder
        found = verify(ledger, study.name)
    if len(found) != 1 or "must hold nothing but" not in found[0]:
        problems.append(f"verify must name the links in one line and nothing else; got {found}")
    for link, target in planted.items():
        (folder / link).unlink() if target is None else (folder / target).rename(folder / link)
    if [path.name for path in outside.iterdir()] != ["file"]:
        problems.append("files outside the study's folder must stay as they are")
    study.url = merged
    return fault_outcome(study, [seconds], problems, times=times)


LINKS = tuple(Case(f"links, seed {seed}", partial(_linked, seed=seed)) for seed in range(4))
