import numpy as np
import pandas
import pytest

from trial_runner.backbones import load_tokenizer
from trial_runner.errors import TaskError
from trial_runner.tasks import Task


@pytest.fixture
def prepare(tiny_backbone, tokenised):
    """Prepare a task in a folder for a tiny backbone."""

    def run(folder, family="roberta", positions=None, **options):
        task = Task(**{"folder": str(folder), "text": "text", "label": "label", "max_tokens": 128} | options)
        return tokenised(task, tiny_backbone(family), position_limit_tokens=positions)

    return run


@pytest.fixture
def tokenizer(tiny_backbone):
    return load_tokenizer(str(tiny_backbone("roberta")))


def rows_of(count, prefix="text"):
    return [{"text": f"{prefix} number {n}", "label": "even" if n % 2 == 0 else "odd"} for n in range(count)]


def texts_of(task, split, tokenizer):
    examples = task.splits[split]
    return [
        tokenizer.decode(examples.input_ids[begin:end], skip_special_tokens=True)
        for begin, end in zip(examples.offsets[:-1], examples.offsets[1:], strict=True)
    ]


def save(rows, path):
    frame = pandas.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_a_folder_is_read_from_any_format_to_the_same_task(tmp_path, prepare, suffix, tokenizer):
    rows = {"train": rows_of(7), "dev": rows_of(3, 'other, "quoted"'), "test": rows_of(2, "null")}
    for split, content in rows.items():
        save(content, tmp_path / f"{split}{suffix}")
    task = prepare(tmp_path)
    assert task.labels == ("even", "odd")
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 7, "validation": 3, "test": 2}
    expected = [tokenizer(row["text"]).input_ids for row in rows["dev"]]
    batch = task.splits["validation"].batch([2, 0], pad_token_id=9)
    assert batch.input_ids[0][batch.attention_mask[0]].tolist() == expected[2]
    assert batch.input_ids[1][batch.attention_mask[1]].tolist() == expected[0]
    assert batch.labels.tolist() == [0, 0]
    assert task.notes == ()


def test_a_csv_keeps_texts_that_look_like_missing_values(tmp_path, prepare):
    save([{"text": "null", "label": "NA"}, {"text": "None", "label": "b"}] * 2, tmp_path / "train.csv")
    for split in ("validation", "test"):
        save([{"text": "NaN", "label": "NA"}, {"text": "n/a", "label": "b"}], tmp_path / f"{split}.csv")
    assert prepare(tmp_path).labels == ("NA", "b")


def test_a_batch_is_padded_to_its_longest_example_or_to_a_multiple(write_splits, prepare):
    folder = write_splits(lambda split: [{"text": split[1] * n, "label": n % 2} for n in range(1, 7)])
    train = prepare(folder).splits["train"]
    batch = train.batch([0, 4, 2], pad_token_id=77)
    assert batch.input_ids.shape == (3, 7)  # <s>, five letters, </s>
    assert (batch.input_ids.dtype, batch.labels.dtype, batch.attention_mask.dtype) == (np.int64, np.int64, np.bool_)
    assert batch.attention_mask.sum(1).tolist() == [3, 7, 5]
    assert ((batch.input_ids == 77) == ~batch.attention_mask).all()
    assert train.batch([0, 4, 2], 77, multiple_of=8).input_ids.shape == (3, 8)
    assert batch.token_type_ids is None


def test_a_pair_has_token_types_where_the_tokenizer_makes_them(write_splits, prepare):
    folder = write_splits(lambda split: [{"first": "ab", "second": split[1], "label": n} for n in range(2)])
    options = {"text": ("first", "second")}
    bert = prepare(folder, "bert", **options).splits["train"].batch([0], 0)
    assert bert.token_type_ids.tolist() == [[0, 0, 0, 0, 1, 1]]  # [CLS] a ##b [SEP] r [SEP]
    roberta = prepare(folder, "roberta", **options).splits["train"].batch([0], 1)
    assert roberta.token_type_ids is None
    assert roberta.input_ids.shape == (1, 7)  # <s> a ##b </s> </s> r </s>


def test_a_long_pair_is_cut_at_its_longer_text_and_noted(write_splits, prepare, tokenizer):
    folder = write_splits(lambda split: [{"a": "x" * 30, "b": split[1:3], "label": n} for n in range(2)])
    task = prepare(folder, text=("a", "b"), max_tokens=10)
    (ids,) = task.splits["train"].batch([0], 1).input_ids
    assert " ".join(tokenizer.convert_ids_to_tokens(ids.tolist())) == "<s> x ##x ##x ##x </s> </s> r ##a </s>"
    assert task.notes[0] == "train: 2 of 2 examples are cut to 10 tokens. Raise task.max_tokens."


def test_missing_splits_are_carved_from_train_without_leaking_equal_texts(write_rows, prepare, tokenizer):
    rows = rows_of(400)
    variants = [{**row, "text": f"  {row['text'].upper()} "} for row in rows]
    task = prepare(write_rows("train.jsonl", rows + variants))
    sizes = {split: len(examples) for split, examples in task.splits.items()}
    assert sum(sizes.values()) == 800
    assert 40 <= sizes["validation"] <= 120
    assert 40 <= sizes["test"] <= 120
    train, validation, test = (set(texts_of(task, split, tokenizer)) for split in ("train", "validation", "test"))
    assert not train & validation | train & test | validation & test
    assert task.notes == (
        f"validation: carved from train by a hash of the text, {sizes['validation']} of 800 rows",
        f"test: carved from train by a hash of the text, {sizes['test']} of 800 rows",
    )


def test_carved_rows_do_not_depend_on_the_other_rows(write_rows, prepare, tokenizer):
    some = texts_of(prepare(write_rows("train.jsonl", rows_of(100))), "validation", tokenizer)
    more = texts_of(prepare(write_rows("train.jsonl", rows_of(200))), "validation", tokenizer)
    assert some
    assert set(some) == {text for text in more if int(text.replace(" ##", "").split()[-1]) < 100}


@pytest.mark.parametrize("hidden", [-1, None])
def test_a_test_split_with_hidden_labels_is_replaced(write_rows, prepare, hidden):
    write_rows("train.jsonl", [{"text": f"t {n}", "label": n % 2} for n in range(100)])
    write_rows("validation.jsonl", [{"text": f"v {n}", "label": n % 2} for n in range(10)])
    folder = write_rows("test.jsonl", [{"text": "hidden", "label": hidden}] * 10)
    task = prepare(folder)
    assert len(task.splits["train"]) + len(task.splits["test"]) == 100
    assert task.notes[0] == "test: 10 of 10 rows are dropped: no label."
    assert task.notes[1].startswith("test: carved from train")


def test_minus_one_is_a_label_like_any_other_where_train_has_it(write_splits, prepare):
    folder = write_splits(lambda split: [{"text": f"{split} {n}", "label": n} for n in (-1, 1)])
    assert prepare(folder).labels == ("-1", "1")


def test_integer_labels_are_sorted_by_value_and_can_be_named(write_splits, prepare):
    folder = write_splits(lambda split: [{"text": split, "label": n} for n in (10, 2, 0, 1)])
    task = prepare(folder)
    assert task.labels == ("0", "1", "2", "10")
    assert task.splits["test"].labels.tolist() == [3, 2, 0, 1]
    folder = write_splits(lambda split: [{"text": split, "label": n} for n in (1, 0)])
    named = prepare(folder, labels=("negative", "positive"))
    assert named.labels == ("negative", "positive")
    assert named.splits["test"].labels.tolist() == [1, 0]
    assert prepare(folder, labels=("1", "0")).splits["test"].labels.tolist() == [0, 1]


def test_whole_numbers_of_a_csv_are_sorted_by_value_and_can_be_named(tmp_path, prepare):
    rows = [{"text": f"text {n}", "label": ("10", "2", "1")[n % 3]} for n in range(60)]
    save(rows, tmp_path / "train.csv")
    assert prepare(tmp_path).labels == ("1", "2", "10")
    save([{**row, "label": str(n % 2)} for n, row in enumerate(rows)], tmp_path / "train.csv")
    assert prepare(tmp_path, labels=("neg", "pos")).labels == ("neg", "pos")


def test_hidden_labels_of_a_csv_leave_its_split_out(tmp_path, prepare):
    save(rows_of(200), tmp_path / "train.csv")
    save([{"text": f"hidden {n}", "label": -1} for n in range(7)], tmp_path / "test.csv")
    task = prepare(tmp_path)
    assert any("7 of 7 rows are dropped: no label" in note for note in task.notes)


def test_numbers_with_a_fraction_or_without_an_end_are_classes(tmp_path, prepare):
    labels = (1.0, 2.5, float("inf"))
    pandas.DataFrame([{"text": f"text {n}", "label": labels[n % 3]} for n in range(60)]).to_parquet(
        tmp_path / "train.parquet"
    )
    assert prepare(tmp_path).labels == ("1", "2.5", "inf")


def test_numbers_with_zeros_before_them_are_names(tmp_path, prepare):
    save([{"text": f"text {n}", "label": ("007", "7")[n % 2]} for n in range(60)], tmp_path / "train.csv")
    assert set(prepare(tmp_path).labels) == {"007", "7"}


def test_a_smaller_train_split_is_a_fixed_part_of_the_whole(write_rows, prepare, tokenizer):
    write_rows("train.jsonl", rows_of(50))
    write_rows("validation.jsonl", rows_of(20, "other"))
    folder = write_rows("test.jsonl", rows_of(20, "unseen"))
    whole = texts_of(prepare(folder), "train", tokenizer)
    task = prepare(folder, examples={"train": 10, "validation": 5})
    ten = texts_of(task, "train", tokenizer)
    assert (len(ten), len(task.splits["validation"]), len(task.splits["test"])) == (10, 5, 20)
    assert ten == [text for text in whole if text in ten]
    assert ten != whole[:10]
    assert set(ten) < set(texts_of(prepare(folder, examples={"train": 20}), "train", tokenizer))
    assert task.notes[0] == "train: 10 of 50 rows, chosen by a hash of the text"


GOOD = {"text": "fine", "label": "a"}
BAD_ROWS = {
    "a missing column": ([{"txt": "a", "label": "b"}], r"a column 'text'; it has: txt, label\. Did you mean 'txt'"),
    "a missing label column": ([{"text": "a", "class": "b"}], "must have a column 'label'; it has: text, class"),
    "blank texts": ([{"text": None, "label": "b"}, {"text": " \n", "label": "b"}], "2 of 2 rows are dropped: no text"),
    "a text that is a number": ([{"text": 3, "label": "b"}], "got 3 in column 'text' of split '{split}', row 1"),
    "a label that is a list": ([{"text": "a", "label": [1]}], r"got \[1\] \(list\) in split '{split}', row 1"),
    "no rows": ([], "must hold at least one example"),
}


@pytest.mark.parametrize("split", ["train", "validation", "test"])
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows_are_one_clear_line(write_splits, write_rows, prepare, split, bad):
    rows, message = BAD_ROWS[bad]
    folder = write_splits(lambda _: [*rows_of(4), GOOD])
    write_rows(f"{split}.jsonl", rows)
    with pytest.raises(TaskError, match=message.format(split=split)) as caught:
        prepare(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_label_that_train_lacks_is_one_clear_line(write_splits, write_rows, prepare, split):
    folder = write_splits(lambda name: rows_of(4, name))
    dropped = {"text": "y", "label": None}  # rows are not counted: earlier ones may be dropped
    write_rows(f"{split}.jsonl", [dropped, *rows_of(2, split), {"text": "x" * 50, "label": "prime"}])
    expected = f"even, odd; got the unknown label 'prime' of the text '{'x' * 39}…' in split '{split}'"
    with pytest.raises(TaskError, match=expected):
        prepare(folder)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (rows_of(40), {"labels": ("even", "uneven")}, "even, uneven; got the unknown label 'odd' of the text"),
        ([GOOD] * 40, {}, "at least two different labels; got a"),
        (rows_of(2), {}, "large enough to carve a tenth"),
    ],
)
def test_a_train_split_that_cannot_be_learned_is_one_clear_line(write_rows, prepare, rows, options, message):
    with pytest.raises(TaskError, match=message):
        prepare(write_rows("train.jsonl", rows), **options)


def test_a_folder_that_is_missing_empty_or_ambiguous_is_one_clear_line(tmp_path, write_rows, prepare):
    with pytest.raises(TaskError, match="there is no folder"):
        prepare(tmp_path / "nowhere")
    folder = write_rows("notes.txt", [])
    with pytest.raises(TaskError, match=r"must hold train\.jsonl, .* holds: notes\.txt"):
        prepare(folder)
    write_rows("train.jsonl", rows_of(3))
    with pytest.raises(TaskError, match=r"must hold matched\.jsonl"):
        prepare(folder, splits={"validation": "matched"})
    write_rows("train.json", rows_of(3))
    with pytest.raises(TaskError, match=r"has several for train: train\.json, train\.jsonl"):
        prepare(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [("train.jsonl", b'{"text": "a"\n{'), ("train.parquet", b"PAR1 no"), ("train.csv", b'text,label\n"a,b\nc')],
)
def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path, prepare, capfd, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TaskError, match=rf"{name}.*(quote that opens in line 2|must be readable as)") as caught:
        prepare(tmp_path)
    assert "\n" not in str(caught.value)
    assert tuple(capfd.readouterr()) == ("", "")


def test_max_tokens_beyond_the_positions_of_the_backbone_is_one_clear_line(write_rows, prepare):
    with pytest.raises(TaskError, match="max_tokens must be at most 64, the positions of the backbone; got 65"):
        prepare(write_rows("train.jsonl", rows_of(40)), positions=64, max_tokens=65)
