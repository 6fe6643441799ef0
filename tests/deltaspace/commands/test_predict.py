"""``deltaspace predict``: the lines of a file with what an export makes of them, or one line of error and no file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.export_commands import write_rows

import deltaspace
from deltaspace.commands.main import main

Predict = Callable[..., tuple[int, str, str]]
WORDS = ["red", "blue", "hill", "sea", "x", "one", "two", "three"]
PAIR = {"folder": "task", "text": ["text", "about"], "label": "label", "max_tokens": 24}
TRANSLATION: dict[str, Any] = {
    "kind": "translation",
    "folder": "task",
    "source": "translation.en",
    "target": "translation.de",
    "metric": "chrf",
    "metrics": ["chrf"],
    "max_tokens": 24,
    "max_target_tokens": 12,
    "instruction": "say",
    "decoding": {"beams": 2, "max_new_tokens": 6},
}


def rows_of(size: int) -> list[dict[str, Any]]:
    """Return texts of different lengths, so that batches have another order than lines."""
    rows = []
    for number in range(size):
        text = " ".join([*WORDS[: 1 + (number * 5) % 7], str(number)])
        both = {"en": text, "de": " ".join(reversed(text.split()))}
        rows.append({"text": text, "about": "sea", "label": ["none", "some"][number % 2], "translation": both})
        rows[-1]["turns"] = [text, "sea"]
    return rows


def as_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def trained(folder: Path, backbone: Path, task: dict[str, Any], patch: pytest.MonkeyPatch) -> Path:
    """Train three steps and return the export."""
    rows = rows_of(40)
    for name, some in {"train": rows[:20], "validation": rows[20:30], "test": rows[30:]}.items():
        write_rows(folder / "task" / f"{name}.jsonl", some)
    training = {"steps": 3, "batch_size": 8, "precision": "fp32"}
    study = {"name": "reviews", "backbone": str(backbone), "task": task, "budget": 900, "training": training}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    patch.setenv("DELTASPACE_CACHE", str(folder / "cache"))
    options = ["--task", str(folder / "study.yaml"), "--learning-rate", "0.05", "--output", str(folder / "export")]
    assert main(["train", "lora_qv", *options]) == 0
    return folder / "export"


@pytest.fixture(scope="module")
def pairs(tiny_backbone: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the export of a classification of pairs."""
    with pytest.MonkeyPatch.context() as patch:
        return trained(tmp_path_factory.mktemp("pairs"), tiny_backbone("roberta"), PAIR, patch)


@pytest.fixture
def predict(pairs, tmp_path, ran) -> Predict:
    """Run the command on some lines; return its exit code, stdout and stderr."""

    def run(lines: str | bytes, *options: str, folder: Path = pairs) -> tuple[int, str, str]:
        data = lines.encode() if isinstance(lines, str) else lines
        (tmp_path / "in.jsonl").write_bytes(data)
        files = ["--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out.jsonl")]
        return ran("predict", str(folder), *files, *options)

    return run


def predicted(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_every_line_gets_its_label_and_scores_in_the_order_of_the_file(predict, pairs, tmp_path):
    import torch

    from trial_runner.backbones import load_tokenizer
    from trial_runner.export import open_delta

    rows = rows_of(23)
    code, out, err = predict(as_lines(rows), "--batch-size", "4", "--json")
    assert code == 0, err
    found = predicted(tmp_path)
    assert [{key: line[key] for key in rows[0]} for line in found] == rows
    delta = open_delta(pairs)
    tokenizer = load_tokenizer(delta.backbone.name)
    for line in found:
        with torch.no_grad():
            tokens = tokenizer(line["text"], line["about"], truncation=True, max_length=24, return_tensors="pt")
            logits = delta.logits(tokens)[0]
        expected = dict(zip(delta.labels, logits.double().softmax(dim=0).tolist(), strict=True))
        assert line["scores"] == pytest.approx(expected, abs=1e-6)
        assert line["prediction"] == max(expected, key=lambda label: expected[label])
    assert len({line["scores"]["some"] for line in found}) > 10
    assert json.loads(out)["lines"] == sum(json.loads(out)["labels"].values()) == 23
    assert err.splitlines()[-2:] == ["predicted 23 of 23", "7 of 23 texts are cut to 24 tokens, as in training."]


def test_lists_of_texts_are_joined_as_in_training(predict, tiny_backbone, tmp_path_factory, tmp_path, monkeypatch):
    task = {"folder": "task", "text": "turns", "label": "label", "join": " / ", "max_tokens": 24}
    folder = trained(tmp_path_factory.mktemp("turns"), tiny_backbone("roberta"), task, monkeypatch)
    turns = [row["turns"] for row in rows_of(9)]
    code, _, err = predict(as_lines([{"turns": some} for some in turns]), folder=folder)
    assert code == 0, err
    found = predicted(tmp_path)
    (tmp_path / "out.jsonl").unlink()
    assert predict(as_lines([{"turns": " / ".join(some)} for some in turns]), folder=folder)[0] == 0
    assert [line["scores"] for line in predicted(tmp_path)] == [line["scores"] for line in found]
    assert len({line["scores"]["some"] for line in found}) > 5
    with pytest.warns(UserWarning, match="3 of 9 texts are cut to 24 tokens"):
        named = deltaspace.predict(folder, turns)
    most = [max(line["scores"].values()) for line in found]
    assert named["probability"].tolist() == pytest.approx(most, abs=1e-12)
    (tmp_path / "out.jsonl").unlink()
    code, _, err = predict(as_lines([{"turns": [1, 2]}]), folder=folder)
    assert code == 2
    assert "line 1 of " in err
    assert "must have a text that is not blank at 'turns'; got [1, 2]." in err


def test_other_keys_and_a_backbone_that_has_moved_can_be_named(predict, pairs, tmp_path):
    backbone = Path(json.loads((pairs / "delta.json").read_text())["backbone"]["name"])
    shutil.copytree(backbone, tmp_path / "moved")
    line = json.dumps({"one": "red hill", "two": "sea"}) + "\n"
    code, _, err = predict(line, "--text", "one,two", "--backbone", str(tmp_path / "moved"))
    assert code == 0, err
    assert predicted(tmp_path)[0]["prediction"] in ("none", "some")


def test_existing_output_is_not_overwritten(predict, tmp_path):
    (tmp_path / "out.jsonl").write_text("precious")
    code, out, err = predict(as_lines(rows_of(2)))
    assert (code, out) == (2, "")
    assert err == (
        f"deltaspace: the output must be a new file; got {tmp_path / 'out.jsonl'}, which exists. Choose another one.\n"
    )
    assert (tmp_path / "out.jsonl").read_text() == "precious"


GOOD = json.dumps({"text": "red", "about": "sea"}) + "\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (GOOD + '{"text": "red"\n', "line 2 of {} must be a JSON object; got: "),
        (GOOD + "[1]\n", "line 2 of {} must be a JSON object; got list."),
        (GOOD + "\n" + GOOD, "line 2 of {} must be a JSON object; got: "),
        (GOOD + '{"text": "red", "about": "sea", "p": NaN}\n', "line 2 of {} must be a JSON object; got: "),
        (GOOD + '{"text": "\\ud800", "about": "sea"}\n', "line 2 of {} must have whole characters; got "),
        (
            '{"text": "red", "abuot": "sea"}\n',
            "line 1 of {} must have a key 'about'; got: text, abuot. Did you mean",
        ),
        ('{"text": "red", "about": " "}\n', "line 1 of {} must have a text that is not blank at 'about'; got ' '."),
        ('{"text": "red", "about": 3}\n', "line 1 of {} must have a text that is not blank at 'about'; got 3."),
        ('{"text": "a", "about": "b", "prediction": 1}\n', "line 1 of {} must not have a key 'prediction'"),
        (b"\x81", "in.jsonl must be UTF-8 text; got byte 0x81 in line 1. Save it as UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "in.jsonl of "),
    ],
)
def test_bad_line_is_named_and_no_output_written(predict, tmp_path, lines, message):
    code, out, err = predict(lines)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("deltaspace: " + message.format(tmp_path / "in.jsonl"))
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_table_is_predicted_like_lines(predict, pairs, tmp_path, ran):
    rows = [{"text": f"{row['text']}, 5 \u20ac", "about": row["about"]} for row in rows_of(6)]
    assert predict(as_lines(rows))[0] == 0
    (tmp_path / "in.csv").write_bytes(
        "".join(f"{text};{about}\n" for text, about in [("text", "about"), *map(dict.values, rows)]).encode("cp1252")
    )
    files = ["--input", str(tmp_path / "in.csv"), "--output", str(tmp_path / "of_table.jsonl")]
    code, _, err = ran("predict", str(pairs), *files)
    assert code == 0, err
    assert "in.csv: read as cp1252, not UTF-8" in err
    assert (tmp_path / "of_table.jsonl").read_text() == (tmp_path / "out.jsonl").read_text()
    (tmp_path / "in.csv").write_text("text,about\na,b\n ,c\n")
    assert ran("predict", str(pairs), *files[:3], str(tmp_path / "none.jsonl"))[0] == 2
    (tmp_path / "in.csv").write_text("text,about\na, b, c\n")
    code, _, err = ran("predict", str(pairs), *files[:3], str(tmp_path / "none.jsonl"))
    assert "in.csv of " in err
    assert "line 2 has 3 cells where the first line names 2" in err


def test_truncated_texts_are_counted(predict, pairs, tmp_path):
    rows = [{"text": "red " * size, "about": "sea"} for size in (3, 200, 300)]
    code, _, err = predict(as_lines(rows))
    assert (code, err.splitlines()[-1]) == (0, "2 of 3 texts are cut to 24 tokens, as in training.")
    with pytest.warns(UserWarning, match=r"^1 of 2 texts is cut to 24 tokens, as in training\.$"):
        deltaspace.predict(pairs, [(row["text"], "sea") for row in rows[:2]])
    (tmp_path / "out.jsonl").unlink()
    _, _, err = predict(as_lines(rows[:1]))
    assert "cut" not in err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--text", "text"), 2, "the text must be in 2 keys, as text, about; got text."),
        (("--batch-size", "0"), 2, "--batch-size"),
        (("--output", "nowhere/out.jsonl"), 2, "the folder of the output must exist; got nowhere. Create it first."),
        (("--input", "nowhere.jsonl"), 2, "the input must be a file; there is no nowhere.jsonl."),
        (("--input", "/dev/zero"), 1, "it must be a regular file: '/dev/zero'."),
        (("--batch-size", f"1{30 * '0'}"), 2, "is not in the range 1<=x<=1000000."),
        (("--backbone", "embedded"), 2, "the delta must be attached to the backbone it was trained on"),
    ],
)
def test_a_bad_option_is_one_line(predict, tmp_path, options, code, message):
    found, out, err = predict(GOOD, *options)
    assert (found, out) == (code, "")
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "out.jsonl").exists()


def test_a_folder_that_is_no_export_or_was_changed_is_refused(predict, pairs, tmp_path):
    code, _, err = predict(GOOD, folder=tmp_path)
    assert code == 2
    assert "an export must have a readable delta.json" in err
    shutil.copytree(pairs, tmp_path / "changed")
    with (tmp_path / "changed" / "delta.safetensors").open("ab") as file:
        file.write(b"0")
    code, _, err = predict(GOOD, folder=tmp_path / "changed")
    assert code == 1
    assert "must be as it was written" in err.splitlines()[-1]


def test_without_a_task_the_keys_of_the_text_must_be_given(predict, pairs, tmp_path):
    shutil.copytree(pairs, tmp_path / "bare")
    facts = json.loads((pairs / "delta.json").read_text()) | {"task": None}
    (tmp_path / "bare" / "delta.json").write_text(json.dumps(facts))
    code, _, err = predict(GOOD, folder=tmp_path / "bare")
    assert code == 2
    assert "Give them with --text." in err
    assert predict(GOOD, "--text", "text,about", folder=tmp_path / "bare")[0] == 0
    alone = predicted(tmp_path)
    (tmp_path / "out.jsonl").unlink()
    assert predict(GOOD)[0] == 0
    assert predicted(tmp_path) == alone


@pytest.mark.slow
@pytest.mark.parametrize("family", ["t5", "gpt2", "bart", "t5_gated"])
def test_export_of_a_text_task_generates_the_same_texts(
    predict, tiny_backbone, tmp_path_factory, tmp_path, monkeypatch, family
):
    import sacrebleu

    place = tmp_path_factory.mktemp(family)
    export = trained(place, tiny_backbone(family), TRANSLATION, monkeypatch)
    lines = (place / "task" / "validation.jsonl").read_text()
    code, out, err = predict(lines, "--batch-size", "3", folder=export)
    assert code == 0, err
    found = predicted(tmp_path)
    assert "scores" not in found[0]
    written = [line["prediction"] for line in found]
    assert len(set(written)) > 2
    references = [line["translation"]["de"] for line in found]
    chrf = sacrebleu.corpus_chrf(written, [references]).score
    recorded = json.loads((export / "delta.json").read_text())["scores"]["metrics"]["chrf"]
    assert recorded == pytest.approx(chrf, abs=1e-6)
    assert chrf > 0.1
    assert out.startswith(f"{len(found)} lines")
