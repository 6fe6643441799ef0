"""Data that are not what they should be, and a dashboard that is asked without a pause while a study runs."""

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from support.asked_dashboard import Asker, dashboard_of
from support.killed_study import finish, wait_for_ends
from support.tiny_models import TINY_FAMILIES, save_model, save_tokenizer

from dashboards.web.pages import PAGES
from fault_arms.bench import Bench, Case, Outcome, met

_TRIALS = {"inline": 90, "ray": 28}
_ASKERS = 4
_LONGEST_ANSWER_SECONDS = 30.0

_GOOD = "".join(json.dumps({"text": f"a text of {n} words", "label": n % 2}) + "\n" for n in range(40)).encode()
MALFORMED: Mapping[str, bytes] = {
    "empty": b"",
    "blank lines": b"\n\n  \n",
    "zeros": b"\0" * 4096,
    "random bytes": bytes(range(256)) * 16,
    "cut off": _GOOD[:-20],
    "another format": b"text,label\nhello,1\n",
    "a list": b"[1, 2, 3]\n",
    "numbers": b"1\n2\n3\n",
    "nested too deeply": b"[" * 100_000,
    "no label": b'{"text": "a"}\n{"text": "b"}\n',
    "no text": b'{"label": 1}\n{"label": 0}\n',
    "labels that are lists": b'{"text": "a", "label": [1]}\n{"text": "b", "label": [0]}\n',
    "labels that are null": b'{"text": "a", "label": null}\n{"text": "b", "label": null}\n',
    "texts that are numbers": b'{"text": 1, "label": 1}\n{"text": 2, "label": 0}\n',
    "texts that are empty": b'{"text": "", "label": 1}\n{"text": "", "label": 0}\n',
    "one label": b'{"text": "a", "label": 1}\n{"text": "b", "label": 1}\n',
    "half a surrogate": b'{"text": "\\ud800", "label": 1}\n{"text": "b", "label": 0}\n',
    "a number of 10,000 digits": b'{"text": "a", "label": ' + b"9" * 10_000 + b"}\n",
    "another encoding": '{"text": "é", "label": "ü"}\n'.encode("utf-16"),
    "a label that is NaN": b'{"text": "a", "label": NaN}\n{"text": "b", "label": 0}\n',
    "columns that change": b'{"text": "a", "label": 1}\n{"words": "b", "class": 0}\n',
    "a folder": b"",
}


def _study_file(bench: Bench) -> Path:
    """Of a study that would run: a tiny backbone, forty texts, one process."""
    backbone = bench.folder / "backbone"
    backbone.mkdir()
    save_model(TINY_FAMILIES["roberta"], 0.0, backbone)
    save_tokenizer(TINY_FAMILIES["roberta"].tokens, backbone)
    study = {
        "name": "malformed",
        "backbone": str(backbone),
        "task": {"folder": "data", "text": "text", "label": "label", "max_tokens": 16},
        "budget": 400,
        "trials": 2,
        "training": {"steps": 2, "batch_size": 4},
        "search": {"published": "none", "sampler": "random"},
        "fleet": {"backend": "inline"},
    }
    file = bench.folder / "study.yaml"
    file.write_text(json.dumps(study))
    return file


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """With a folder as the working one, and a cache of its own."""
    before, cache = Path.cwd(), os.environ.get("DELTASPACE_CACHE")
    os.chdir(folder)
    os.environ["DELTASPACE_CACHE"] = str(folder / "cache")
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("DELTASPACE_CACHE")
        if cache is not None:
            os.environ["DELTASPACE_CACHE"] = cache


def _malformed(bench: Bench) -> Outcome:
    """Data that are not what they should be: refused before any work, in words, or trained on."""
    from deltaspace.commands.main import main

    file, seconds, wrong = _study_file(bench), [], []
    data = bench.folder / "data"
    data.mkdir()
    with _inside(bench.folder):
        for name, content in MALFORMED.items():
            for split in ("train", "validation", "test"):
                (data / f"{split}.jsonl").write_bytes(_GOOD)
            if name == "a folder":
                (data / "train.jsonl").unlink()
                (data / "train.jsonl").mkdir()
            else:
                (data / "train.jsonl").write_bytes(content)
            began_at = time.monotonic()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                code = main(["check", str(file)])
            seconds.append(time.monotonic() - began_at)
            line = said.getvalue().strip()
            if code not in (0, 1, 2) or (code and not line) or "Traceback" in line:
                wrong.append(f"{name}: ended with {code}, {line[-200:]!r}")
            if (bench.folder / "deltaspace.db").exists():
                wrong.append(f"{name}: a database was made")
    return Outcome(times=len(MALFORMED), violations=tuple(wrong), seconds=tuple(seconds))


class _Askers:
    """Threads that ask a dashboard for everything, again and again.

    Attributes:
        answers: How many there were.
        wrong: What was no answer.
        longest: Seconds of the slowest answer.
    """

    def __init__(self, asker: Asker) -> None:
        self.answers, self.longest = 0, 0.0
        self.wrong: list[str] = []
        self._asker = asker
        self._is_over = threading.Event()
        names = [name for page in PAGES for name in page.answers if page.of_study and "*" not in name]
        self._paths = ["/", "/api/studies.json", "/studies/1/", *(f"/api/studies/1/{name}" for name in names)]
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(_ASKERS)]

    def _ask(self) -> None:
        while not self._is_over.is_set():
            for path in self._paths:
                began_at = time.monotonic()
                try:
                    answer = self._asker.ask(path)
                except OSError as error:
                    self.wrong.append(f"{path}: {error}")
                    continue
                self.answers += 1
                self.longest = max(self.longest, time.monotonic() - began_at)
                if answer.status != 200:
                    self.wrong.append(f"{path}: {answer.status} {answer.body[-100:]!r}")

    def __enter__(self) -> "_Askers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def _asked(bench: Bench, *, database: str, backend: str) -> Outcome:
    """A dashboard that is asked without a pause answers, and the study under it runs to its end."""
    study = bench.study(database, backend, _TRIALS[backend])
    process = study.launch()
    wait_for_ends(study, process, 1)
    with dashboard_of(study.url) as asker, _Askers(asker) as askers:
        finish(study, process)
    wrong = sorted(set(askers.wrong))
    if not askers.longest < _LONGEST_ANSWER_SECONDS:
        wrong.append(f"an answer took {askers.longest:.1f} s")
    return met(study, [askers.longest], wrong, times=askers.answers)


DATA = (Case(f"{len(MALFORMED)} kinds of malformed data", _malformed),)
DASHBOARD = tuple(
    Case(f"dashboard, {backend}, {database}", partial(_asked, database=database, backend=backend))
    for database, backend in (("sqlite", "inline"), ("postgres", "inline"), ("sqlite", "ray"))
)
