"""What the dashboard costs on a large study: milliseconds of every address, seconds to every page and to a reading.

    python benchmarks/dashboard.py                      20,000 trials; making them takes a few minutes
    python benchmarks/dashboard.py --trials 2000
    python benchmarks/dashboard.py --keep large.db      keeps the ledger; measures it again if it is there
    python benchmarks/dashboard.py --training           a study that trains beside it, and nothing else; a minute

Pages are opened in Chromium. The ledger is that of ``ledger_size.py``.
"""

import argparse
import http.client
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ledger_size import RUNGS, STUDY, fill

from dashboards.web.pages import PAGES
from dashboards.web.server import serving
from search_space.space.random_draw import RandomTrial
from studies.errors import StudiesError
from studies.records import ReadingRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.proposer import Proposal
from studies.specification.recorded import recorded_space
from studies.store.ledger import Ledger

ASKS = 20
READINGS = 6
ANSWER_MILLISECONDS, PAINT_SECONDS, NEWS_SECONDS = 200.0, 2.0, 2.0


def line(what: str, value: float, unit: str, limit: float | None = None) -> None:
    held = "" if limit is None else f"≤ {limit:g}{'' if value <= limit else '  MISSED'}"
    print(f"{what:<72}{value:>9.2f} {unit:<3} {held}".rstrip())


def quantile(values: Sequence[float], share: float = 0.95) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]


def milliseconds(work: Callable[[], object]) -> float:
    began_at = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began_at)


def answers(trials: int) -> Iterator[str]:
    """The addresses that pages ask; of many of a kind one."""
    yield "studies.json"
    for page in PAGES:
        for name in page.answers if page.of_study else ():
            stars = {"trials/*.json": trials // 2, "differences/*.json": f"{trials // 2}-1", "views/*.json": "V8"}
            yield f"studies/1/{name.replace('*', str(stars.get(name, '')))}"
    yield "studies/1/curves.json?trials=" + ",".join(map(str, range(40)))


def asked(address: str, path: str) -> bytes:
    link = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    try:
        link.request("GET", path)
        answer = link.getresponse()
        assert answer.status == 200, f"{path}: {answer.status}"
        return answer.read()
    finally:
        link.close()


def measure_first_look(address: str, trials: int) -> None:
    """What a page asks of a study that nobody has looked at: all of it, part by part."""
    times, known, session, version = [], 0, "", 0
    while known < trials:
        path = f"/api/studies/1/trials.json?session={session}&since={version}&ranked=0"
        began_at = time.perf_counter()
        found = json.loads(asked(address, path))
        times.append(1000 * (time.perf_counter() - began_at))
        session, version = found["session"], found["version"]
        known += len(found["trials"]["rows"])
    line(f"the first looks at a study, {len(times)} answers: the slowest", max(times), "ms", ANSWER_MILLISECONDS)
    line("all of its trials", sum(times) / 1000, "s")


def measure_answers(address: str, trials: int) -> None:
    """p95 of every address, the study having been read once."""
    for name in answers(trials):
        path = f"/api/{name}"
        size = len(asked(address, path))
        before = time.process_time()
        times = [milliseconds(lambda path=path: asked(address, path)) for _ in range(ASKS)]
        cpu = 1000 * (time.process_time() - before) / ASKS
        what = f"{path.split('?')[0]} ({size / 2**20:.1f} MiB, {cpu:.0f} ms of CPU), p95"
        line(what, quantile(times), "ms", ANSWER_MILLISECONDS)


def measure_pages(address: str, program: str, url: str) -> None:
    """First paint of every page, and how long a reading takes onto it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for page in PAGES:
            opened = browser.new_page()
            path = (
                ("" if page.name == "studies" else f"{page.name}/") if not page.of_study else f"studies/1/{page.name}/"
            )
            opened.goto(address + path.replace("live/", ""))
            opened.wait_for_selector("body[data-ready]", timeout=120_000)
            ready = opened.evaluate("() => performance.now() / 1000")
            paint = opened.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000")
            line(f"page {page.name}: first paint", paint, "s", PAINT_SECONDS)
            line(f"page {page.name}: all that it shows", ready, "s")
            opened.close()
        measure_news(browser.new_page(), address, url)
        browser.close()


def measure_news(page: Any, address: str, url: str) -> None:
    """From the writing of a reading to the page."""
    with Ledger.open(url) as ledger:
        study = ledger.study(STUDY)
        epoch = ledger.take_over(study.id, "benchmark")
        number, space = sum(ledger.state_counts(study.id).values()), recorded_space(study)
        proposal = Proposal(number=number, candidate=space.suggest(RandomTrial(number)))
        trial = new_trial(proposal, space.shape, study_seed=0, head_parameters=1538)
        ledger.add_trials(study.id, epoch, [replace(trial, fingerprint=f"news-{number}")], worker="w/1")
        page.goto(f"{address}studies/1/")
        page.wait_for_selector(f"tr[data-number='{number}']", timeout=120_000)
        for step in RUNGS:
            reading = ReadingRecord(
                trial=number, step=step, attempt=1, score=0.5, metrics={}, train_loss=1.0, seconds=1.0, rung=None
            )
            ledger.settle(study.id, epoch, number, 1, readings=[reading])
            began_at = time.perf_counter()
            page.wait_for_function(
                """([number, step]) => Number(document.querySelector(`tr[data-number='${number}']`)
                    ?.cells[3].textContent.split("/")[0]) === step""",
                arg=[number, step],
                polling=20,
                timeout=120_000,
            )
            line(f"a reading of step {step} on the page", time.perf_counter() - began_at, "s", NEWS_SECONDS)


def measure_training(folder: Path, program: str) -> None:
    """From a reading in the ledger to the page, while the shipped example really trains on this machine."""
    from playwright.sync_api import sync_playwright

    url = f"sqlite:///{folder / 'training.db'}"
    words = ["launch", "docstrings", "--trials", "500", "--backend", "inline", "--storage", url, "--quiet"]
    # short trials, so that readings come every few seconds
    words += ["--set", "training.steps=40", "--set", "pruning.first_rung_steps=10"]
    command = "from deltaspace.commands.main import main; raise SystemExit(main())"
    launch = subprocess.Popen([sys.executable, "-c", command, *words], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        number, step = newest(url, launch, (-1, 0))
        with serving(url) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(f"{address}studies/1/")
            page.wait_for_selector("body[data-ready]", timeout=120_000)
            times = []
            for _ in range(READINGS):
                number, step = newest(url, launch, (number, step))
                began_at = time.perf_counter()
                page.wait_for_function(_HAS_STEP, arg=[number, step], polling=20, timeout=120_000)
                times.append(time.perf_counter() - began_at)
            browser.close()
    finally:
        launch.kill()
        launch.wait()
    line(f"{READINGS} readings of a study that trains, on the page: in the mean", sum(times) / len(times), "s")
    line("the slowest of them", max(times), "s", NEWS_SECONDS)


def newest(url: str, launch: "subprocess.Popen[bytes]", known: tuple[int, int]) -> tuple[int, int]:
    """Trial and step of the newest reading of a running trial, once there is one that is not known."""
    file = Path(url.removeprefix("sqlite:///"))
    while launch.poll() is None:
        if file.exists():
            with suppress(StudiesError), Ledger.open(url, read_only=True) as ledger:
                for trial in ledger.trials(1, states=[TrialState.RUNNING]):
                    if trial.last_score is not None and (trial.number, trial.steps) > known:
                        return trial.number, trial.steps
        time.sleep(0.02)
    raise SystemExit("the study must train until its readings were seen; it has ended.")


_HAS_STEP = """([number, step]) => [...document.querySelectorAll(`tr[data-number='${number}']`)].some((row) => {
    const [done, all] = row.cells[3].textContent.split("/");
    return all === undefined || Number(done) >= step;
})"""
"""Whether the page has a reading of a trial that runs, or shows that it has ended."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--training", action="store_true")
    given = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        if given.training:
            if program is None:
                parser.error("--training needs Chromium.")
            measure_training(Path(folder), program)
            return
        file = (given.keep or Path(folder) / "large.db").absolute()
        if not file.exists():
            fill(file, given.trials)
        url = f"sqlite:///{file}"
        with serving(url) as address:
            measure_first_look(address, given.trials)
            measure_answers(address, given.trials)
            if program is None:
                print("no Chromium: pages were not opened.")
            else:
                measure_pages(address, program, url)


if __name__ == "__main__":
    main()
