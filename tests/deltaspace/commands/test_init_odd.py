"""Odd inputs through ``deltaspace init``: each becomes a study file, or is one line that says what to do."""

import gzip
import json
from collections.abc import Callable
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


def lines(held: list[dict[str, Any]], **options: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, **options) + "\n" for row in held).encode()


def separated(held: list[dict[str, Any]], separator: str = ",", end: str = "\n") -> str:
    head = separator.join(held[0])
    return end.join([head, *(separator.join(f'"{value}"' for value in row.values()) for row in held)]) + end


TEXTS = rows()
GOOD: dict[str, tuple[str, bytes]] = {
    "semicolons": ("data.csv", separated(TEXTS, ";").encode()),
    "tabs called csv": ("data.csv", separated(TEXTS, "\t").encode()),
    "a byte order mark": ("data.csv", b"\xef\xbb\xbf" + separated(TEXTS).encode()),
    "packed tabs": ("DATA.TSV.GZ", gzip.compress(separated(TEXTS, "\t").encode())),
    "one list": ("data.json", json.dumps(TEXTS, indent=1).encode()),
    "columns in other scripts": (
        "data.jsonl",
        lines(rows(текст=lambda n: f"слово {n} и ещё слово", 标签=lambda n: n % 2)),
    ),
    "true and false": ("data.jsonl", lines(rows(text=lambda n: f"some words {n} here", label=lambda n: n % 2 == 0))),
    "lists of texts": ("data.jsonl", lines(rows(text=lambda n: ["one text", f"another {n}"], label=lambda n: n % 2))),
}
REFUSED: dict[str, tuple[str, bytes, str]] = {
    "latin-1": (
        "data.csv",
        separated(TEXTS).replace("rather", "très").encode("latin-1"),
        r"got byte 0xe8 in line 2\. .*iconv",
    ),
    "UTF-16": ("data.csv", separated(TEXTS).encode("utf-16"), "it is UTF-16"),
    "numbers alone": ("data.csv", separated(rows(a=lambda n: n, b=lambda n: n / 2)).encode(), "a: numbers; b: numbers"),
    "nested": ("data.json", json.dumps({"data": [{"rows": TEXTS}], "version": 1}).encode(), "the columns are data: "),
    "empty": ("data.jsonl", b"", "data.jsonl is empty"),
    "names alone": ("data.csv", b"text,label\n", "at least one example; data.csv has none"),
    "half a line": ("data.jsonl", lines(TEXTS)[:-9], "must be readable as json"),
    "too few to carve": ("data.jsonl", lines(rows(2)), "large enough to carve|a task needs a text"),
    "a picture": ("data.png", b"\x89PNG", r"got data\.png: its name ends in \.png"),
    "not packed": ("data.csv.gz", b"text,label\n", "Not a gzipped file"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


QUICK = ("semicolons", "packed tabs", "columns in other scripts", "lists of texts", "a byte order mark")


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in GOOD])
def test_an_odd_file_becomes_a_study_that_passes_its_check(case: str, here: Path) -> None:
    name, content = GOOD[case]
    (here / name).write_bytes(content)
    file = deltaspace.init(name, "study.yaml", name="odd", takes_steps=False)
    assert yaml.safe_load(file.read_text())["task"]["kind"] == "classification"
    shown = str(deltaspace.check(file, takes_steps=False))
    assert "constant prediction" in shown


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_study_is_one_line(case: str, here: Path) -> None:
    name, content, message = REFUSED[case]
    (here / name).write_bytes(content)
    with pytest.raises((RunnerError, StudiesError, SearchSpaceError), match=message) as refused:
        deltaspace.init(name, "study.yaml", name="odd", takes_steps=False)
    assert "\n" not in str(refused.value)
    assert not (here / "study.yaml").exists()


@pytest.mark.parametrize("keys", [keys for n in range(1, 5) for keys in combinations(ROLES, n)], ids="-".join)
def test_one_column_for_whatever_is_a_study_or_refused(keys: tuple[str, ...], here: Path) -> None:
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


def folder_named_like_a_file(here: Path) -> str:
    (here / "d" / "train.jsonl").mkdir(parents=True)
    return "d"


def no_such_file(here: Path) -> str:
    return "reviews.csv"


def no_such_hub_name(here: Path) -> str:
    return "nobody/has-this"


def not_even_a_name(here: Path) -> str:
    return "what is this?"


def an_empty_folder(here: Path) -> str:
    (here / "d").mkdir()
    return "d"


def two_that_may_be_train(here: Path) -> str:
    (here / "d").mkdir()
    for name in ("a_train.csv", "b_train.csv"):
        (here / "d" / name).write_text(separated(TEXTS))
    return "d"


def none_that_is_train(here: Path) -> str:
    (here / "d").mkdir()
    for name in ("one.csv", "two.csv"):
        (here / "d" / name).write_text(separated(TEXTS))
    return "d"


def a_file_that_may_not_be_read(here: Path) -> str:
    (here / "data.csv").symlink_to(here / "gone.csv")
    return "data.csv"


PLACES: dict[Callable[[Path], str], str] = {
    folder_named_like_a_file: r"train\.jsonl of d must be a file; it is a folder",
    no_such_file: r"there is no reviews\.csv",
    no_such_hub_name: "must be on the hub or in its cache",
    not_even_a_name: r"there is no what is this\?",
    an_empty_folder: "d holds: nothing",
    two_that_may_be_train: r"these may be: a_train, b_train\. Name the files of one study",
    none_that_is_train: r"one file must be train; the data has: one, two\.",
    a_file_that_may_not_be_read: r"there is no data\.csv",
}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_place_without_data_is_one_line(place: Callable[[Path], str], here: Path) -> None:
    with pytest.raises((RunnerError, StudiesError), match=PLACES[place]) as refused:
        deltaspace.init(place(here), takes_steps=False)
    assert "\n" not in str(refused.value)


def test_a_gigabyte_is_looked_at_from_its_beginning(here: Path) -> None:
    file = here / "huge.jsonl"
    file.write_bytes(lines(rows(3_000)))
    with file.open("ab") as growing:
        growing.truncate(1 << 30)  # takes no disk: nothing is written there
    text = deltaspace.init("huge.jsonl", takes_steps=False).read_text()
    assert "of a large file" in text
    assert yaml.safe_load(text)["task"]["label"] == "label"
