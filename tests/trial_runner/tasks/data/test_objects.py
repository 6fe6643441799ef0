"""Files of JSON objects: values stay as they stand."""

import json

import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks.data.formats import opened_rows
from trial_runner.tasks.data.objects import number_of

KEPT = {
    "dates": ["2024-02-01", "2024-02-01T10:00:00Z"],
    "texts of numbers": ["1.0", "007"],
    "whole": [1, 2],
    "scale": [0.5, 1.5],
    "mappings": [{"a": 1}, {"a": 2}],
    "mixed lists": [["a", "b"], "c"],
    "nothing": [None, "a"],
}
AS_TEXT = {
    "large": ([2**64 + 1, 1], ["18446744073709551617", "1"]),
    "mixed": ([1, "1.0"], ["1", "1.0"]),
    "numbers": ([1.0, "a"], ["1", "a"]),
    "truths": ([True, "yes"], ["true", "yes"]),
}


def labels(folder, values):
    (folder / "train.jsonl").write_text("".join(json.dumps({"label": value}) + "\n" for value in values))
    with opened_rows((folder / "train.jsonl",), "train") as rows:
        return rows["label"][:]


@pytest.mark.parametrize("case", KEPT)
def test_values_of_json_stay_as_they_stand(case, tmp_path):
    assert labels(tmp_path, KEPT[case]) == KEPT[case]


@pytest.mark.parametrize("case", AS_TEXT)
def test_mixed_values_have_one_exact_text(case, tmp_path):
    values, expected = AS_TEXT[case]
    assert labels(tmp_path, values) == expected


ROWS = [{"text": "a", "label": 1}, {"text": "b\u2028", "label": 0}]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\n".join(map(json.dumps, ROWS)),
        json.dumps({"text": ["a", "b\u2028"], "label": [1, 0]}),
        json.dumps({"text": ["a", "b\u2028"], "label": [1, 0]}, indent=2) + "\n",
        json.dumps({"text": {"0": "a", "1": "b\u2028"}, "label": {"0": 1, "1": 0}}),
    ],
    ids=["list", "indented list", "lines", "columns", "indented columns", "columns by index"],
)
def test_json_file_is_read_in_any_orientation(content, tmp_path):
    (tmp_path / "train.json").write_text(content)
    with opened_rows((tmp_path / "train.json",), "train") as rows:
        assert list(rows) == ROWS


def test_columns_of_different_lengths_are_no_rows(tmp_path):
    (tmp_path / "train.json").write_text(json.dumps({"data": ROWS, "splits": ["a"]}, indent=2))
    with opened_rows((tmp_path / "train.json",), "train") as rows:
        assert list(rows) == [{"data": ROWS, "splits": ["a"]}]


def test_half_a_character_is_refused_with_its_line(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "a"}\n\n{"text": ["a boat \\ud83d"]}\n')
    with pytest.raises(TaskError, match=r"line 3 of train\.jsonl must have whole characters; got \\ud83d"):
        opened_rows((tmp_path / "train.jsonl",), "train").__enter__()


@pytest.mark.parametrize("name", ["train.csv", "train.jsonl", "train.parquet"])
def test_git_lfs_pointer_in_place_of_data_is_named(name, tmp_path):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(TaskError, match=rf"{name} of .* is a git-lfs pointer, not the file\. Run 'git lfs pull'"):
        opened_rows((tmp_path / name,), "train").__enter__()


def test_numbers_are_read_with_a_comma_or_a_point():
    assert [number_of(text) for text in ("3,5", "-0.25", " 7 ", "1e3")] == [3.5, -0.25, 7.0, 1000.0]
    for text in ("3,5,1", "1_000", "a", ""):
        with pytest.raises(ValueError, match=r"number|convert"):
            number_of(text)
