"""Inputs that demand more than is allowed: each is a command in a process of its own, with its seconds and its memory.

PYTHONPATH=.:tests python -m support.bounded_inputs [NAME ...]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.fixed_ledger import fixed_ledger
from support.small_study import BACKBONE

ENDLESS = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM a"
INTERRUPT_AFTER = 6.0
_PEAK = """
import atexit
from pathlib import Path
peak = lambda: next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
atexit.register(lambda: Path({0!r}).write_text(peak()))
"""
"""What a command begins with: it writes the most memory that it held; that of a child includes what its parent held."""

_MAIN = "import sys; from deltaspace.commands.main import main; sys.exit(main(sys.argv[1:]))"
_HEADER = "import sys; from pathlib import Path; from trial_runner.files import check_header\n"
_HEADER += "from safetensors.torch import load_file\ncheck_header(Path(sys.argv[1])); load_file(sys.argv[1])"
_CHAT = "import sys; from trial_runner.chat_templates import written\n"
_CHAT += "text = '{{ messages[0][\"content\"] * 1000 }}'\n"
_CHAT += "written(text, [{'role': 'user', 'content': 'x' * 20_000_000}], {})"
_CACHE = "import sys; sys.path.insert(0, 'tests'); from support.bounded_inputs import show_with_cache\n"
_CACHE += "show_with_cache(sys.argv[1], sys.argv[2])"


@dataclass(frozen=True)
class CommandEnd:
    """End of a command.

    Attributes:
        seconds: Seconds of the wall clock.
        megabytes: Largest resident memory.
        code: Exit code.
        last_line: Last line on stderr.
        has_traceback: Whether there was one, of an error that is not of this library.
    """

    seconds: float
    megabytes: float
    code: int
    last_line: str
    has_traceback: bool


def _study(folder: Path, **config: object) -> list[str]:
    """Return the words of a plan of a study on a backbone whose config.json has other values."""
    given = json.loads((BACKBONE / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(given | config))
    (folder / "study.yaml").write_text(f"name: odd\nbackbone: {folder}\ntask: {{name: docstrings}}\nbudget: 0.5%\n")
    return [_MAIN, "plan", str(folder / "study.yaml")]


def _digits(folder: Path) -> list[str]:
    text = f"name: odd\nbackbone: embedded\ntask: {{name: docstrings}}\nbudget: {'9' * 4301}\n"
    (folder / "study.yaml").write_text(text)
    return [_MAIN, "check", str(folder / "study.yaml")]


def _tensors(folder: Path) -> list[str]:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": entry for number in range(10**6)}).encode()
    (folder / "delta.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return [_HEADER, str(folder / "delta.safetensors")]


def _csv(content: str) -> Callable[[Path], list[str]]:
    def make(folder: Path) -> list[str]:
        (folder / "train.csv").write_text("text,label\n" + content)
        return [_MAIN, "init", str(folder), "--no-steps"]

    return make


def _query(folder: Path) -> list[str]:
    url = f"sqlite:///{folder / 'ledger.db'}"
    fixed_ledger(url, folder)
    return [_MAIN, "query", ENDLESS, "--timeout", "2s", "--storage", url]


def _interrupted(folder: Path) -> list[str]:
    words = _query(folder)
    words[words.index("2s")] = "60s"
    return words


CASES: dict[str, Callable[[Path], list[str]]] = {
    "config.json of 10^9 layers": lambda folder: _study(folder, num_hidden_layers=10**9),
    "config.json of a kernel of the hub": lambda folder: _study(folder, _attn_implementation="someone/kernel"),
    "header of 10^6 tensors": _tensors,
    "csv line of 40 MB without an end": _csv("x" * 40_000_000),
    "csv with a quote that never ends": _csv('"' + "a\n" * 10_000_000),
    "message of 20 MB in a chat template": lambda _: [_CHAT],
    "query beyond its timeout": _query,
    "Ctrl-C in a query": _interrupted,
    "number of 4,301 digits": _digits,
    "cache of estimates of many levels": lambda folder: [_CACHE, str(folder), "levels"],
    "cache of estimates that is a pipe": lambda folder: [_CACHE, str(folder), "pipe"],
}


def show_with_cache(folder: str, kind: str) -> None:
    """Show a study of planted scores whose cache of estimates is odd."""
    os.environ["DELTASPACE_CACHE"] = folder
    from support.planted_ledger import Planted

    from studies.analysis.estimates import cached_estimates
    from studies.analysis.leaderboard import leaderboard

    planted = Planted(f"sqlite:///{folder}/ledger.db", 20)
    leaderboard(planted.ledger, "planted")
    (kept,) = Path(folder, "estimates").iterdir()
    kept.unlink()
    if kind == "pipe":
        os.mkfifo(kept)
    else:
        kept.write_text("[" * 10**7)
    cached_estimates.cache_clear()
    leaderboard(planted.ledger, "planted")


def outcome_of(name: str) -> CommandEnd:
    """Run a case."""
    with tempfile.TemporaryDirectory() as folder:
        script, *words = CASES[name](Path(folder))
        peak, began_at = Path(folder, "peak"), time.perf_counter()
        command = [sys.executable, "-c", _PEAK.format(str(peak)) + script, *words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if name.startswith("Ctrl-C"):
            threading.Timer(INTERRUPT_AFTER, process.send_signal, [signal.SIGINT]).start()
        _, text = process.communicate()
        seconds, kilobytes = time.perf_counter() - began_at, int(peak.read_text().split()[1])
    return CommandEnd(
        seconds=seconds,
        megabytes=kilobytes / 1e3,
        code=process.returncode,
        last_line=(text.splitlines() or [""])[-1],
        has_traceback="Traceback" in text and "trial_runner.errors" not in text,
    )


def lines(names: list[str]) -> Iterator[str]:
    """Yield the table: a line for each case."""
    yield f"{'case':<38}{'seconds':>9}{'MB':>7}{'exit':>6}  {'traceback':<11}last line"
    for name in names or CASES:
        one = outcome_of(name)
        found = "yes" if one.has_traceback else "no"
        yield f"{name:<38}{one.seconds:>9.1f}{one.megabytes:>7.0f}{one.code:>6}  {found:<11}{one.last_line[:150]}"


if __name__ == "__main__":
    for line in lines(sys.argv[1:]):
        sys.stdout.write(f"{line}\n")
