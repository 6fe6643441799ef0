"""Files of rows in every form that is read, and one line for each that is not."""

import gzip
import json
from pathlib import Path

import datasets
import pyarrow.parquet
import pytest

from trial_runner.errors import TaskError
from trial_runner.huggingface import quiet_datasets
from trial_runner.tasks import Task
from trial_runner.tasks.data.folder import files_digest, find_files
from trial_runner.tasks.data.formats import head_rows, opened_rows, stem_of

ROWS = [
    {"text": 'He said "no", twice', "label": "a"},
    {"text": "semi;colon | bar", "label": "b"},
    {"text": "É und ß", "label": "a"},
]


def rows_in(folder: Path, split: str = "train", **keys: object) -> list[dict[str, object]]:
    files = find_files(Task(folder=str(folder), **keys))  # type: ignore[arg-type]
    with opened_rows(files[split][""], split) as dataset:
        return [dict(row) for row in dataset]


def separated(separator: str) -> bytes:
    lines = [separator.join(("text", "label"))]
    lines += [separator.join(('"' + row["text"].replace('"', '""') + '"', row["label"])) for row in ROWS]
    return "\n".join(lines).encode()


LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
FORMS = {
    "train.jsonl": LINES,
    "TRAIN.JSONL": LINES,
    "train.ndjson": LINES,
    "train.json": json.dumps(ROWS).encode(),
    "train.jsonl.gz": gzip.compress(LINES),
    "Train.csv.GZ": gzip.compress(separated(",")),
    "train.csv": separated(","),
    "train.CSV": separated(";"),
    "train.tsv": separated("\t"),
    "train.Csv": separated("|"),
    "train-00000-of-00001.jsonl": LINES,
}


@pytest.mark.parametrize("name", FORMS)
def test_rows_are_equal_in_every_format_without_a_download(name, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.load.get_session", lambda: pytest.fail("a file is no download"))
    (tmp_path / name).write_bytes(FORMS[name])
    assert rows_in(tmp_path) == ROWS


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbf" + separated(";"))
    assert rows_in(tmp_path) == ROWS
    (tmp_path / "train.csv").unlink()
    (tmp_path / "train.jsonl").write_bytes(b"\xef\xbb\xbf" + LINES)
    assert rows_in(tmp_path) == ROWS


def saved_dataset(folder: Path) -> None:
    datasets.Dataset.from_list(ROWS).save_to_disk(str(folder / "train"))


def saved_splits(folder: Path) -> None:
    datasets.DatasetDict(train=datasets.Dataset.from_list(ROWS)).save_to_disk(str(folder))


def saved_itself(folder: Path) -> None:
    datasets.Dataset.from_list(ROWS).save_to_disk(str(folder))


def arrow_file(folder: Path) -> None:
    datasets.Dataset.from_list(ROWS).save_to_disk(str(folder / "elsewhere"))
    next((folder / "elsewhere").glob("*.arrow")).rename(folder / "train.arrow")
    for left in (folder / "elsewhere").iterdir():
        left.unlink()


def parts(folder: Path) -> None:
    for number in range(2):
        some = datasets.Dataset.from_list(ROWS[2 * number : 2 * number + 2])
        some.to_parquet(str(folder / f"train-0000{number}-of-00002-ab12.parquet"))


@pytest.mark.parametrize("save", [saved_dataset, saved_splits, saved_itself, arrow_file, parts])
def test_files_written_by_datasets_are_read(save, tmp_path):
    with quiet_datasets():
        save(tmp_path)
    assert rows_in(tmp_path) == ROWS


def test_the_hash_of_data_changes_with_any_part_of_it(tmp_path):
    parts(tmp_path)
    before = files_digest(find_files(Task(folder=str(tmp_path))))
    assert files_digest(find_files(Task(folder=str(tmp_path)))) == before
    datasets.Dataset.from_list(ROWS[:1]).to_parquet(str(tmp_path / "train-00001-of-00002-ab12.parquet"))
    assert files_digest(find_files(Task(folder=str(tmp_path)))) != before


def test_a_split_is_named_by_the_path_from_the_folder(tmp_path):
    (tmp_path / "train.jsonl").write_bytes(LINES)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "dev.csv").write_bytes(separated(","))
    assert rows_in(tmp_path, "validation", splits={"validation": "more/dev.csv"}) == ROWS


def test_tabs_of_glue_leave_quotes_alone_and_those_of_spreadsheets_do_not(tmp_path):
    (tmp_path / "train.tsv").write_text('text\tlabel\n"unfinished\t1\nboth "\t0\n')
    assert [row["text"] for row in rows_in(tmp_path)] == ['"unfinished', 'both "']
    (tmp_path / "train.tsv").write_text('text\tlabel\n"two\nlines"\t1\n"a ""quote"""\t0\n')
    assert [row["text"] for row in rows_in(tmp_path)] == ["two\nlines", 'a "quote"']


REFUSED = {
    "another code page": (
        "train.csv",
        "text,label\nok,a\nЖЩЦ,b\n".encode("cp1251"),
        r"line 3\. Save it as",
    ),
    "Polish": ("train.jsonl", '{"text": "zażółć gęślą"}\n'.encode("cp1250"), r"UTF-8 text; got byte 0xbf in line 1"),
    "not packed": ("train.csv.gz", b"text,label\na,b\n", r"must be readable as csv; Not a gzipped file"),
    "packed by half": ("train.jsonl.gz", gzip.compress(LINES * 50)[:-20], r"must be readable as json; .*ended"),
    "no header": ("train.tsv", b"0\tfine\n1\tbad\n", r"must name its columns, each once; got '0', 'fine'\. Put a line"),
    "a name twice": ("train.csv", b"text,text\na,b\n", r"each once; got 'text', 'text'"),
    "empty": ("train.csv", b"", r"at least one example; train\.csv is empty"),
    "blank lines": ("train.jsonl", b"\n\n  \n", r"at least one example; train\.jsonl has none"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_of_another_kind_is_one_line(case, tmp_path):
    name, content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TaskError, match=message) as refused:
        rows_in(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "stem"),
    [("train.jsonl.gz", "train"), ("train-00000-of-00012.parquet", "train"), ("v1.2-dev.csv", "v1.2-dev")],
)
def test_split_name_excludes_suffixes_of_the_format(name, stem):
    assert stem_of(Path(name)) == stem


def test_of_a_large_file_the_beginning_is_looked_at(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_bytes(LINES * 4)
    with file.open("ab") as growing:
        growing.truncate(1 << 30)  # no disk is taken: nothing is written there
    with head_rows((file,), 300) as (dataset, is_whole):
        assert ([dict(row) for row in dataset][:3], is_whole) == (ROWS, False)
    file.write_bytes(LINES)
    with head_rows((file,), 300) as (dataset, is_whole):
        assert (len(dataset), is_whole) == (3, True)


DEEP = b'{"text": "a", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
WIDE = {f"c{number}": 1 for number in range(6_000)}
TOO_MUCH = {
    "train.jsonl": (DEEP, "at most 500 values within each other"),
    "train.jsonl.gz": (gzip.compress(b"\n" * 90_000_000), "100 times its size"),
    "train.csv.gz": (gzip.compress(b"text,label,".ljust(70_000_000, b"x")), "lines of at most"),
    "train.ndjson": (json.dumps(WIDE).encode(), "at most 5,000 columns; it has more"),
    "validation.jsonl": (b"".join(b'{"text": "a", "k%d": 1}\n' % row for row in range(6_000)), "at most 5,000 columns"),
    "test.json": (json.dumps([{"text": "a", "m": {one: 1}} for one in WIDE]).encode(), "at most 5,000 columns"),
    "train.csv": (",".join(WIDE).encode() + b"\n", "at most 5,000 columns; it has 6,000"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_MUCH)
def test_decompression_bomb_is_refused(tmp_path, name):
    content, message = TOO_MUCH[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TaskError, match=message), opened_rows((tmp_path / name,), "train"):
        pass


def test_a_parquet_file_of_more_rows_than_bytes_is_refused(tmp_path):
    file = tmp_path / "train.parquet"
    same = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 200_000), pyarrow.array(["the same"]))
    pyarrow.parquet.write_table(pyarrow.table({"text": same}), file)
    with pytest.raises(TaskError, match="a row for each of its bytes"), opened_rows((file,), "train"):
        pass


@pytest.mark.parametrize(
    "row_of",
    [
        lambda row: {"text": f'"w{row}": and {row}', f"l{row % 3}": "a:"},
        lambda row: {"text": 'a "quoted\\" ' + "[{" * 1000, "label": "a\\"},
    ],
    ids=["words before a colon", "brackets"],
)
def test_separators_in_texts_are_no_columns_and_no_levels(row_of, tmp_path):
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row_of(row)) + "\n" for row in range(9_000)))
    with opened_rows((tmp_path / "train.jsonl",), "train") as found:
        assert len(found) == 9_000
