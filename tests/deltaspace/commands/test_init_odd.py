"""Odd inputs through ``deltaspace init``: each becomes a study file, or is one line that says what to do."""

import gzip
import json
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

import deltaspace
from search_space.errors import SearchSpaceError
from studies.errors import StudiesError
from trial_runner.errors import RunnerError

WORDS = ("good", "bad")
ROLES = ("text", "label", "source", "target")


def rows(count: int = 60, **values: Any) -> list[dict[str, Any]]:
    given = values or {"text": lambda n: f"number {n} was rather {WORDS[n % 2]}", "label": lambda n: WORDS[n % 2]}
    return [{name: value(n) if callable(value) else value for name, value in given.items()} for n in range(count)]


def lines(held: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in held).encode()


def separated(held: list[dict[str, Any]], separator: str = ",") -> str:
    head = separator.join(held[0])
    return "\n".join([head, *(separator.join(f'"{value}"' for value in row.values()) for row in held)]) + "\n"


TEXTS = rows()
GOOD: dict[str, tuple[str, bytes]] = {
    "packed tabs": ("DATA.TSV.GZ", gzip.compress(separated(TEXTS, "\t").encode())),
    "a name that terminals obey": (
        "data.jsonl",
        lines([{"te\u202ext": row["text"], "y": row["label"]} for row in TEXTS]),
    ),
    "columns in other scripts": (
        "data.jsonl",
        lines(rows(текст=lambda n: f"слово {n} и ещё слово", 标签=lambda n: n % 2)),
    ),
    "true and false": ("data.jsonl", lines(rows(text=lambda n: f"some words {n} here", label=lambda n: n % 2 == 0))),
    "lists of texts": ("data.jsonl", lines(rows(text=lambda n: ["one text", f"another {n}"], label=lambda n: n % 2))),
}
REFUSED: dict[str, tuple[str, bytes, str]] = {
    "cyrillic": (
        "data.csv",
        separated(TEXTS).replace("rather", "очень").encode("cp1251"),
        r"got byte 0xee in line 2\. Save it as UTF-8",
    ),
    "numbers alone": ("data.csv", separated(rows(a=lambda n: n, b=lambda n: n / 2)).encode(), "a: numbers; b: numbers"),
    "nested": ("data.json", json.dumps({"data": [{"rows": TEXTS}], "version": 1}).encode(), "the columns are data: "),
    "names alone": ("data.csv", b"text,label\n", "at least one example; data.csv has none"),
    "half a line": ("data.jsonl", lines(TEXTS)[:-9], "must be readable as json"),
    "too few to carve": ("data.jsonl", lines(rows(2)), "large enough to carve|a text must stand"),
    "a picture": ("data.png", b"\x89PNG", r"got data\.png: its name ends in \.png"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


QUICK = ("packed tabs", "columns in other scripts", "lists of texts", "a name that terminals obey")


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in GOOD])
def test_an_odd_file_becomes_a_study_that_passes_its_check(case: str, here: Path) -> None:
    name, content = GOOD[case]
    (here / name).write_bytes(content)
    file = deltaspace.init(name, "study.yaml", name="odd", takes_steps=False)
    text = file.read_text()
    assert yaml.safe_load(text)["task"]["kind"] == "classification"
    assert all(line.isprintable() for line in text.split("\n"))
    shown = str(deltaspace.check(file, takes_steps=False))
    assert "constant prediction" in shown


@pytest.mark.parametrize("case", REFUSED)
def test_impossible_study_is_refused_in_one_line(case: str, here: Path) -> None:
    name, content, message = REFUSED[case]
    (here / name).write_bytes(content)
    with pytest.raises((RunnerError, StudiesError, SearchSpaceError), match=message) as refused:
        deltaspace.init(name, "study.yaml", name="odd", takes_steps=False)
    assert "\n" not in str(refused.value)
    assert not (here / "study.yaml").exists()


@pytest.mark.parametrize("keys", [keys for n in range(1, 5) for keys in combinations(ROLES, n)], ids="-".join)
def test_one_column_for_several_roles_is_accepted_or_refused(keys: tuple[str, ...], here: Path) -> None:
    (here / "data.csv").write_text(separated(TEXTS))
    with suppress(RunnerError, StudiesError):
        deltaspace.init("data.csv", **dict.fromkeys(keys, "label"), backbone="embedded", takes_steps=False)


def test_three_columns_of_texts_are_refused_and_one_is_taken_by_its_name(here: Path) -> None:
    (here / "data.csv").write_text(separated(TEXTS))
    with pytest.raises(StudiesError, match=r"task\.text"):
        deltaspace.init(
            "data.csv", text=["text", "text", "label"], label="label", backbone="embedded", takes_steps=False
        )
    file = deltaspace.init("data.csv", text="text", label="label", backbone="embedded", takes_steps=False)
    assert yaml.safe_load(file.read_text())["task"]["text"] == "text"


PLACES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "a folder named like a file": ("d", ("d/train.jsonl/",), r"train\.jsonl of d must be a file; it is a folder"),
    "no such file": ("reviews.csv", (), r"there is no reviews\.csv"),
    "no such hub name": ("nobody/has-this", (), "must be on the hub or in its cache"),
    "not even a name": ("what is this?", (), r"there is no what is this\?"),
    "an empty folder": ("d", ("d/",), "d holds: nothing"),
    "two that may be train": (
        "d",
        ("d/a_train.csv", "d/b_train.csv"),
        r"these may be: a_train, b_train\. Name the files of one study",
    ),
    "none that is train": ("d", ("d/one.csv", "d/two.csv"), r"one file must be train; the data has: one, two\."),
}
"""What is named, the folders and files that are there, and what is said."""


@pytest.mark.parametrize("case", PLACES)
def test_a_place_without_data_is_one_line(case: str, here: Path) -> None:
    named, there, message = PLACES[case]
    for one in there:
        folder, _, file = one.rpartition("/")
        (here / folder).mkdir(parents=True, exist_ok=True)
        if file:
            (here / one).write_text(separated(TEXTS))
    with pytest.raises((RunnerError, StudiesError), match=message) as refused:
        deltaspace.init(named, takes_steps=False)
    assert "\n" not in str(refused.value)


def test_broken_link_is_reported_as_a_missing_file(here: Path) -> None:
    (here / "data.csv").symlink_to(here / "gone.csv")
    with pytest.raises(RunnerError, match=r"there is no data\.csv"):
        deltaspace.init("data.csv", takes_steps=False)


def test_a_gigabyte_is_looked_at_from_its_beginning(here: Path) -> None:
    file = here / "huge.jsonl"
    some = lines(rows(3_000))
    file.write_bytes(some * ((65 << 20) // len(some)))
    with file.open("ab") as growing:
        growing.truncate(1 << 30)  # takes no disk: nothing is written there
    text = deltaspace.init("huge.jsonl", takes_steps=False).read_text()
    assert "of a large file" in text
    assert yaml.safe_load(text)["task"]["label"] == "label"
