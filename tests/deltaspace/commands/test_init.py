"""``deltaspace init``: from data to a study file that is valid, and one line where there is none."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import datasets
import pandas
import pytest
import yaml
from support.export_commands import write_rows

import deltaspace
from deltaspace.commands.main import main
from studies.errors import InvalidRequestError
from studies.study_file import read_specification

WORDS = ("good", "bad")
ROWS = [{"review": f"number {n} was rather {WORDS[n % 2]} to see", "verdict": WORDS[n % 2]} for n in range(120)]

Run = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_init(here: Path, ran: Callable[..., tuple[int, str, str]]) -> Run:
    """Run ``deltaspace init``, which must have an exit status; return its stderr."""

    def invoke(*arguments: str, status: int = 0) -> str:
        code, _, err = ran("init", "--no-steps", *arguments)
        assert code == status, err
        return err

    return invoke


def write_csv(file: Path, rows: Sequence[Mapping[str, object]] = ROWS) -> None:
    file.parent.mkdir(exist_ok=True)
    pandas.DataFrame(rows).to_csv(file, index=False)


def test_a_label_of_numbers_may_be_a_class_or_a_scale(run_init, here):
    stars = [{"review": f"{number} of the films that I saw this year", "stars": number % 5} for number in range(200)]
    write_csv(here / "stars.csv", stars)
    run_init("stars.csv")
    assert (
        "# stars has 5 whole numbers, read as classes; to learn them as a scale: --kind regression --label stars.\n"
        in (here / "stars.yaml").read_text()
    )


def test_a_file_becomes_a_commented_study_file(run_init, here):
    write_csv(here / "reviews.csv")
    printed = run_init("reviews.csv")
    assert printed.splitlines()[0].startswith("classification: train ")
    assert "validation: carved from train by a hash of the text" in printed
    assert printed.endswith("wrote reviews.yaml; look it over, then: deltaspace check reviews.yaml\n")
    text = (here / "reviews.yaml").read_text()
    assert "# reads review, learns verdict\n" in text
    assert "# measured by accuracy; metric may be: accuracy, f1, matthews\n" in text
    study = read_specification("reviews.yaml")
    assert (study.name, study.backbone.name, study.task.kind) == ("reviews", "embedded", "classification")
    assert (study.task.text, study.task.label, study.task.folder) == (("review",), "verdict", str(here))
    assert study.task.splits == {"train": "reviews.csv"}
    assert study.task.max_tokens % 8 == 0


def test_study_file_in_another_folder_finds_data_and_backbone(run_init, here, tiny_backbone):
    write_csv(here / "data" / "train.csv")
    (here / "studies").mkdir()
    run_init("data", "--output", "studies/mine.yaml", "--name", "mine", "--backbone", str(tiny_backbone("roberta")))
    written = yaml.safe_load((here / "studies" / "mine.yaml").read_text())
    assert written["task"]["folder"] == "../data"
    assert read_specification("studies/mine.yaml").task.folder == str(here / "data")


@pytest.mark.parametrize("given", ["data", "data/train.csv"])
def test_folder_of_data_stays_absolute_or_relative(run_init, here, given):
    write_csv(here / "data" / "train.csv")
    (here / "studies").mkdir()
    for name, data, folder in (("far", str(here / given), str(here / "data")), ("near", given, "../data")):
        run_init(data, "--output", f"studies/{name}.yaml")
        assert yaml.safe_load((here / "studies" / f"{name}.yaml").read_text())["task"]["folder"] == folder
        assert read_specification(f"studies/{name}.yaml").task.folder == str(here / "data")


def test_study_file_is_overwritten_only_on_request(run_init, here):
    write_csv(here / "reviews.csv")
    (here / "reviews.yaml").write_text("mine")
    assert "the study file must be new; reviews.yaml is there already" in run_init("reviews.csv", status=2)
    assert (here / "reviews.yaml").read_text() == "mine"
    run_init("reviews.csv", "--overwrite")
    assert (here / "reviews.yaml").read_text() != "mine"


def test_names_of_files_determine_their_splits(run_init, here):
    write_csv(here / "d" / "my_train.csv")
    write_csv(here / "d" / "my-valid.csv", ROWS[:10])
    write_csv(here / "d" / "eval.csv", ROWS[10:20])
    run_init("d/my_train.csv", "d/my-valid.csv", "d/eval.csv", "--name", "three")
    task = read_specification("three.yaml").task
    assert task.splits == {"train": "my_train.csv", "validation": "my-valid.csv", "test": "eval.csv"}


@pytest.mark.slow
def test_trials_and_steps_fit_the_time(here, capsys, monkeypatch):
    write_csv(here / "reviews.csv")
    assert main(["init", "reviews.csv", "--time", "1s"]) == 0  # no machine does 24 trials in it
    assert " min here, " in (here / "reviews.yaml").read_text()
    study = read_specification("reviews.yaml")
    assert (study.trials, study.training.steps) == (24, 60)
    assert main(["init", "reviews.csv", "--time", "soon", "--overwrite"]) == 2
    assert "time must be a time above 0, such as 90s" in capsys.readouterr().err
    capsys.readouterr()


def test_a_frame_a_dataset_and_a_mapping_are_data_too(here):
    frame = pandas.DataFrame(ROWS)
    labels = datasets.Features(review=datasets.Value("string"), verdict=datasets.ClassLabel(names=list(WORDS)))
    dataset = datasets.Dataset.from_list(ROWS).cast(labels)
    first = deltaspace.init(frame, name="frame", takes_steps=False)
    second = deltaspace.init(dataset, name="dataset", takes_steps=False)
    third = deltaspace.init(
        {"train": frame, "test": dataset.select(range(9))}, "x.yaml", name="both", takes_steps=False
    )
    assert [file.name for file in (first, second, third)] == ["frame.yaml", "dataset.yaml", "x.yaml"]
    for file in (first, second, third):
        assert read_specification(file).task.label == "verdict"
    assert "good" in second.read_text()  # the names of its classes stay
    assert sorted(file.name for file in (here / "both-data").iterdir()) == ["test.parquet", "train.parquet"]


def test_file_without_a_table_is_refused(here):
    with pytest.raises(InvalidRequestError, match=r"must be a pandas frame, a datasets.Dataset, "):
        deltaspace.init(5, name="number", takes_steps=False)


def test_a_text_task_needs_its_backbone_in_a_line(run_init, here, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(here / "empty"))
    articles = [{"article": f"words and words {n} " * 9, "headline": f"words {n} and"} for n in range(60)]
    write_rows(here / "train.jsonl", articles)
    assert "needs a backbone that generates" in run_init(
        "train.jsonl", "--name", "news", "--backbone", "embedded", status=2
    )
    assert "backbone must be 'embedded', a folder" in run_init("train.jsonl", "--name", "news", status=2)
    assert not (here / "news.yaml").exists()
