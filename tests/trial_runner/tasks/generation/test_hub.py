import pytest
from datasets import Dataset, Features, List, Translation, Value

from trial_runner.errors import TaskError
from trial_runner.tasks import Decoding, Task


@pytest.fixture
def prepared(tiny_backbone, tokenised):
    return lambda source: tokenised(source, tiny_backbone("bart"))


def text_source(task_kind="translation", metric="bleu", source="en", target="ro", hub="owner/dataset", **options):
    columns = {"source": source, "target": target, "max_tokens": 128, "decoding": Decoding(max_new_tokens=9)}
    return Task(kind=task_kind, hub=hub, metric=metric, **columns, **options)


def translations(prefix, count=2):
    rows = [{"en": f"{prefix} {n}", "ro": f"{n}"} for n in range(count)]
    return Dataset.from_dict({"translation": rows}, features=Features({"translation": Translation(["en", "ro"])}))


def test_a_translation_dataset_is_read_by_its_languages(hub, prepared):
    hub({split: translations(split) for split in ("train", "validation", "test")})
    assert prepared(text_source()).splits["test"].references == (("0",), ("1",))
    with pytest.raises(TaskError, match="split 'train' must have a column 'de'; it has: translation"):
        prepared(text_source(target="de"))


def test_blank_rows_of_the_hub_are_left_out_and_noted(hub, prepared):
    def split(sources, targets):
        return Dataset.from_dict({"document": sources, "summary": targets})

    train = split(["a", "", "b", "c"], ["x", "y", " ", "z"])
    hub({"train": train, "validation": split(["d", "  "], ["x", "y"]), "test": split(["e", "f"], ["x", ""])})
    task = prepared(text_source("summarisation", "rouge2", "document", "summary"))
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 2, "validation": 1, "test": 1}
    assert task.notes == (
        "train: 1 of 4 rows is dropped: no text.",
        "train: 1 of 4 rows is dropped: no reference.",
        "validation: 1 of 2 rows is dropped: no text.",
        "test: 1 of 2 rows is dropped: no reference.",
    )


def test_lists_of_mappings_and_of_lists_are_read_as_the_hub_stores_them(hub, prepared):
    texts = List(Value("string"))
    features = Features({"sets": {"triples": List(texts)}, "lex": {"text": texts, "lang": texts}})

    def split(name, texts):
        row = {"sets": {"triples": [[f"{name} | is | b_c"]]}, "lex": {"text": texts, "lang": ["en"] * len(texts)}}
        return Dataset.from_list([row, {**row, "lex": {"text": [], "lang": []}}], features=features)

    hub({name: split(name, ["x", "y"]) for name in ("train", "dev", "test")})
    task = prepared(text_source("data_to_text", "bleu", "sets.triples", "lex.text"))
    assert task.splits["validation"].references == (("x", "y"),)
    assert len(task.splits["train"]) == 2
    with pytest.raises(TaskError, match=r"must have a column 'lex\.txt'; it has: sets"):
        prepared(text_source("data_to_text", "bleu", "sets.triples", "lex.txt"))


def test_hub_revision_is_requested_and_config_is_a_folder(hub, prepared):
    calls = hub({split: translations(split) for split in ("train", "validation", "test")})
    for revision in (None, "v2", "refs/convert/parquet"):
        prepared(text_source(hub={"name": "owner/dataset", "configuration": "ro-en", "revision": revision}))
    assert calls == [
        ("owner/dataset", "ro-en", {}),
        ("owner/dataset", "ro-en", {"revision": "v2"}),
        ("owner/dataset", None, {"revision": "refs/convert/parquet", "data_dir": "ro-en"}),
    ]


def test_a_split_that_is_joined_of_several_has_a_group_for_each(hub, prepared):
    def split(prefix, count):
        texts = [f"{prefix} {n}" for n in range(count)]
        return Dataset.from_dict({"text": texts, "label": [str(n % 2) for n in range(count)]})

    hub({"train": split("t", 200), "near": split("n", 2), "far": split("f", 3)})
    columns = {"hub": "owner/dataset", "text": "text", "label": "label"}
    source = Task(**columns, splits={"test": {"near": "near", "far": "far"}})
    task = prepared(source)
    assert task.splits["test"].groups == ("near", "near", "far", "far", "far")
    assert task.splits["validation"].groups is None
    assert prepared(source).splits["test"].groups == task.splits["test"].groups
    with pytest.raises(TaskError, match=r"must have a split 'nera'; it has: train, near, far\. Did you mean 'near'"):
        prepared(Task(**columns, splits={"test": {"near": "nera"}}))
