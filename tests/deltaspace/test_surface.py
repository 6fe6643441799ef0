"""Public names of the package, their documentation, and light imports."""

import importlib
import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from support.processes import ROOT, printed_by
from support.screens import screen

import deltaspace
from dashboards.terminal.tables import trial_renderable
from deltaspace import Configuration, Study
from studies.records import TrialState
from studies.runtime.progress import Progress
from studies.trackers.facts import facts_of

ROBERTA = str(ROOT / "tests" / "data" / "backbones" / "roberta_base")
HEAVY = ("torch", "transformers", "ray")
FUNCTIONS = [name for name in deltaspace.__all__ if name.islower() and name != "errors"]


@pytest.fixture
def study(sample_storage: str) -> Study:
    return deltaspace.open_study("sample", sample_storage)


@pytest.mark.parametrize("name", deltaspace.__all__)
def test_public_name_exists_and_has_a_docstring(name):
    value = getattr(deltaspace, name)
    assert name in dir(deltaspace)
    assert len(inspect.getdoc(value) or "") > 40
    assert getattr(deltaspace, name) is value


@pytest.mark.parametrize("name", [*FUNCTIONS, "Study", "Trial", "errors"])
def test_public_functions_have_an_example(name):
    assert ">>> " in (inspect.getdoc(getattr(deltaspace, name)) or "")


def test_a_type_checker_and_the_interpreter_see_the_same_names():
    imported = re.findall(r"^    from \S+ import (\w+) as \1$", inspect.getsource(deltaspace), re.MULTILINE)
    assert sorted(imported) == deltaspace.__all__


def test_missing_name_error_lists_the_names():
    with pytest.raises(AttributeError, match=r"no attribute 'lunch'\. It has: .*launch"):
        deltaspace.lunch  # noqa: B018


@pytest.mark.parametrize("package", ["search_space", "trial_runner", "studies", "dashboards"])
def test_every_error_of_a_package_can_be_caught_by_its_public_name(package):
    module = importlib.import_module(f"{package}.errors")
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    assert own
    for error in own:
        assert getattr(deltaspace.errors, error.__name__) is error
        assert error.__name__ in deltaspace.errors.__all__


def loaded_after(script: str, *suspects: str) -> list[str]:
    """Return the suspects that a fresh interpreter has loaded after the script."""
    ending = f"\nimport sys\nprint(*sorted(set(sys.modules) & set({suspects!r})))"
    return printed_by("-c", script + ending).splitlines()[-1].split()


def test_importing_the_package_loads_no_dependency():
    suspects = (*HEAVY, "pandas", "numpy", "sqlalchemy", "optuna", "pydantic", "rich", "click", "yaml", "studies")
    assert loaded_after("import deltaspace; dir(deltaspace)", *suspects) == []


LOOKING = """
import deltaspace
print(deltaspace.studies({url!r}))
study = deltaspace.open_study("sample", {url!r})
for table in (study.leaderboard(top=3), study.front):
    str(table), table._repr_html_()
str(study.best), study.best._repr_html_(), study.best.configuration, study.summary
"""


@pytest.mark.slow
def test_reading_a_study_loads_no_deep_learning_library(sample_storage):
    assert loaded_after(LOOKING.format(url=sample_storage), *HEAVY) == []


@pytest.mark.slow
def test_frames_load_pandas_but_not_torch(sample_storage):
    script = (
        LOOKING.format(url=sample_storage)
        + "study.trials, study.readings, study.events, study.trial(1).readings, study.query('select 1')\n"
    )
    assert loaded_after(script, *HEAVY, "pandas") == ["pandas"]


def test_a_study_answers_with_tables(study):
    board = study.leaderboard(top=1)
    assert {"score", "method", "number"} <= set(board.to_string(max_cols=4).splitlines()[0].split())
    assert board.iloc[0][["number", "score", "state"]].tolist() == [3, 0.85, "complete"]
    assert {"mam_adapter", "lora_qv", "bitfit"} <= set(board["method"])


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_printed_leaderboard_of_a_page_shows_score_and_method(study, page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (expression,) = re.findall(r"print\((study\.leaderboard\(top=5\)[^)]*)\)", (ROOT / page).read_text())
    for table in (study.leaderboard(top=5), eval(expression)):
        lines = str(table).splitlines()
        assert {"score", "method"} <= set(lines[0].split())
        assert max(map(len, lines)) <= 80


def test_readings_are_a_frame(study):
    assert list(study.trials["number"]) == [0, 1, 2, 3, 4, 5]
    assert study.trials["attention_form"][1] == "lowrank"
    assert study.query("select count(*) as trials from trials").to_dict("records") == [{"trials": 6}]
    assert set(study.readings["trial"]) == {0, 1, 3, 4}
    assert "accuracy" in study.readings.columns
    assert list(study.events.columns) == ["at", "kind", "trial", "text"]
    by_state = study.trials.groupby("state", observed=False).size()
    assert list(by_state.index) == [state.value for state in TrialState]
    assert by_state.sum() == 6


def test_columns_of_the_frames_are_typed(study):
    kinds = {name: str(kind) for name, kind in study.trials.dtypes.items()}
    words = [name for name, kind in kinds.items() if kind == "category"]
    assert words == ["state", "method"] + [
        f"{side}_{name}"
        for side in ("attention", "ffn")
        for name in ("form", "write", "insertion", "gate", "heads", "activation")
    ] + ["origin"]
    expected = {"number": "Int64", "score": "float64", "ffn_bottleneck": "Int64", "reason": "string"}
    assert {name: kinds[name] for name in expected} == expected
    assert kinds["created_at"].endswith("UTC]")
    frame = study.query("select state, score > 0.5 as good, number, created_at from trials", limit=2)
    assert [str(kind).split("[")[0] for kind in frame.dtypes] == ["category", "Int64", "Int64", "datetime64"]
    assert frame.attrs["is_cut"]
    assert not study.query("select 1").attrs["is_cut"]


def test_the_best_trial_is_a_trial(study):
    best = study.best
    assert (best.number, best.score, best.state, best.method) == (3, 0.85, "complete", None)
    assert best == study.trial("best") == study.trial(3)
    assert isinstance(best.configuration, Configuration)
    assert deltaspace.count(best).stored == best.stored_parameters
    assert set(best.learning_rates) == {site for site in ("attention", "ffn") if getattr(best.record, site)}
    assert list(best.readings["score"]) == [0.65, 0.85]
    assert str(best).startswith("trial 3 of sample (discovered, complete, accuracy 0.8500, ")


EQUAL = "LoRA r=8, query+value (lora_qv)"


@pytest.mark.parametrize(
    ("method", "description", "name"),
    [("bitfit", "bias", "bitfit"), (None, EQUAL, "lora_qv"), (None, "LoRA r=8, key", "discovered")],
)
def test_every_view_of_a_trial_names_its_method(study, method, description, name):
    trial = study.best
    trial = replace(trial, record=replace(trial.record, method=method, description=description))
    assert f"({name}, complete, " in str(trial)
    assert f"\n{name}, complete, " in screen(trial_renderable(trial))
    assert f"{name}, complete" in str(deltaspace.describe(trial))
    assert facts_of(trial.study_record, trial.record)["method"] == name


def test_the_storage_is_that_of_the_environment_unless_one_is_given(sample_storage, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(deltaspace.errors.StorageError, match=r"deltaspace\.db"):
        deltaspace.studies()
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    assert deltaspace.studies()["name"].tolist() == ["sample"]
    assert deltaspace.open_study("sample").storage == sample_storage


def test_missing_entry_is_a_key_error_with_a_plain_text(study, sample_storage):
    with pytest.raises(KeyError) as missing:
        deltaspace.open_study("nope", sample_storage)
    assert isinstance(missing.value, deltaspace.errors.UnknownStudyError)
    assert str(missing.value).startswith("no study 'nope' in ")
    with pytest.raises(KeyError, match=r"^no trial 99; the study has 0 to 5\.$"):
        study.trial(99)
    with pytest.raises(KeyError, match=r"^no published method 'lroa_qv'\. Did you mean 'lora_qv'\? Known: "):
        deltaspace.published_method("lroa_qv")


def test_invalid_values_raise_value_errors_with_the_requirement(study):
    for error in ("BackboneError", "TaskError", "ExportRequestError", "SettingError", "InvalidRequestError"):
        assert issubclass(getattr(deltaspace.errors, error), ValueError)
    with pytest.raises(deltaspace.errors.SettingError, match="rank must be a whole number of at least 1; got -1"):
        deltaspace.published_method("lora_qv").values({"r": -1})
    with pytest.raises(ValueError, match="a query must only read"):
        study.query("delete from trials")
    with pytest.raises(ValueError, match=r"the study is not a valid study file; 3 problems:"):
        deltaspace.launch({"name": "x", "trials": 3})
    with pytest.raises(ValueError, match="1 problem:\nbudget: "):
        deltaspace.launch("docstrings", overrides={"budget": "200%"})
    with pytest.raises(ValueError, match="top must be at least 0; got -1"):
        study.leaderboard(top=-1)


def test_unknown_study_file_error_lists_examples(tmp_path):
    with pytest.raises(ValueError, match=r"there is no 'docstring'\. Examples: .*sst2.*Did you mean 'docstrings'\?$"):
        deltaspace.launch("docstring")
    with pytest.raises(ValueError, match=r"there is no nowhere\.yaml\.$"):
        deltaspace.launch("nowhere.yaml")
    with pytest.raises(ValueError, match=r"must be a file, a shipped example or a mapping; got 5\."):
        deltaspace.launch(5)  # type: ignore[arg-type]


def test_a_baseline_by_itself_is_one_baseline(study):
    with pytest.raises(KeyError, match="no published method 'lroa'"):
        study.confirm(against="lroa")


def test_a_study_without_a_complete_trial_has_no_best(study, tmp_path):
    from dataclasses import fields, replace

    from studies.ledger.ledger import Ledger
    from studies.records import NewStudy

    url = f"sqlite:///{tmp_path / 'empty.db'}"
    with Ledger.open(study.storage, read_only=True) as ledger:
        record = ledger.study("sample")
    new = NewStudy(**{field.name: getattr(record, field.name) for field in fields(NewStudy)})
    with Ledger.open(url) as ledger:
        ledger.create_study(replace(new, name="empty"))
    empty = deltaspace.open_study("empty", url)
    assert len(empty.leaderboard()) == len(empty.trials) == 0
    assert [*empty.leaderboard().columns] == [*study.leaderboard().columns]
    with pytest.raises(deltaspace.errors.StudiesError, match="must have a complete trial"):
        _ = empty.best


def test_a_count_is_that_of_the_paper():
    # BART-large, prefix 30 and adapter 512: 27,377,664 weights, printed as 6.7% (He et al. 2022, table 6)
    bart = str(ROOT / "tests" / "data" / "backbones" / "bart_large")
    assert deltaspace.count("mam_adapter", bart, l=30, r=512).weights_only == 27_377_664
    assert deltaspace.count("mam_adapter:l=30,r=512", bart) == deltaspace.count("mam_adapter", bart, l=30, r=512)
    assert deltaspace.shape_of(bart).parameters == 406_291_456
    configuration = deltaspace.published_method("lora_qv").configuration(deltaspace.shape_of(ROBERTA), {"r": 16})
    assert deltaspace.count(configuration, ROBERTA).stored == 589_824
    with pytest.raises(KeyError, match="only published methods have settings"):
        deltaspace.count(configuration, ROBERTA, r=16)


def test_a_description_is_text_and_html(study):
    described = deltaspace.describe("mam_adapter", ROBERTA, r=512)
    for part in ("functional form", "softmax(q_i", "W_down: 768 × 512", "nearest published", "He et al. 2022"):
        assert part in str(described)
    assert "&lt;" in described._repr_html_() or "<pre>" in described._repr_html_()
    assert str(deltaspace.describe(study.best)).startswith("trial 3 of sample: ")
    assert deltaspace.describe(study.best.configuration, ROBERTA).sentence == deltaspace.describe(study.best).sentence


def test_a_description_is_text_in_a_notebook_too(monkeypatch):
    """Test rich consoles in notebooks, which display their output and leave the file empty."""
    import rich.console

    expected = str(deltaspace.describe("lora_qv", ROBERTA))
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    assert str(deltaspace.describe("lora_qv", ROBERTA)) == expected


def test_packages_have_type_markers():
    packages = ("search_space", "trial_runner", "studies", "dashboards", "deltaspace")
    assert [name for name in packages if not (ROOT / name / "py.typed").exists()] == []


TRIVIAL = {
    "name": "trivial",
    "backbone": ROBERTA,
    "task": {"name": "docstrings"},
    "budget": "0.5%",
    "trials": 6,
    "training": {"steps": 16},
    "pruning": {"first_rung_steps": 4},
    "search": {"sampler": "random", "published": ["mam_adapter", "bitfit"]},
    "fleet": {"backend": "inline", "pack": 2},
}


@pytest.fixture
def trivial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """URL of a new storage; studies that are launched train nothing."""
    import functools

    from support.trivial_runner import TrivialFactory

    import studies.launch.launch

    monkeypatch.chdir(tmp_path)
    launched = functools.partial(studies.launch.launch.launch, factory=TrivialFactory(step_seconds=0))
    monkeypatch.setattr(studies.launch.launch, "launch", launched)
    return f"sqlite:///{tmp_path / 'trivial.db'}"


def test_study_launched_from_a_mapping_can_be_continued(trivial):
    observed: list[Progress] = []
    study = deltaspace.launch(TRIVIAL, storage=trivial, overrides={"trials": 4}, progress=observed.append)
    assert len(study.trials) == 4
    assert TRIVIAL["trials"] == 6
    assert observed
    assert observed[-1].ended == 4
    specification = deltaspace.Specification.from_json(study.trial(0).study_record.specification)
    again = deltaspace.launch(specification, storage=trivial, overrides={"trials": 5}, progress=False)
    assert again == study
    assert len(again.trials) == 5
    assert again.events["text"].iloc[-1] == "finished: all 5 trials have ended"
    with pytest.raises(deltaspace.errors.StudyChangedError, match="seed"):
        deltaspace.launch(TRIVIAL, storage=trivial, overrides={"seed": 1}, progress=False)


def test_progress_is_shown_unless_it_is_not_wanted(trivial, capsys):
    deltaspace.launch(TRIVIAL, storage=trivial)
    assert "\n6/6 trial " in capsys.readouterr().err
    deltaspace.launch(TRIVIAL, storage=trivial, overrides={"name": "quiet"}, progress=False)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


@pytest.mark.parametrize(("progress", "times"), [(False, 0), (lambda progress: None, 1)])
def test_launch_warnings_are_printed_unless_quiet(trivial, capsys, progress, times):
    deltaspace.launch(TRIVIAL, storage=trivial, overrides={"trials": 2}, progress=progress)
    printed = capsys.readouterr()
    assert printed.err.count("this study searches nothing: all of its 2 trials") == times
    assert printed.out == ""


def test_a_study_is_a_study_of_optuna(trivial):
    import optuna

    study = deltaspace.launch(TRIVIAL, storage=trivial, progress=False)
    stock = study.to_optuna()
    assert isinstance(stock, optuna.Study)
    assert [trial.number for trial in stock.trials] == list(study.trials["number"])
    assert stock.best_value == study.best.score
    assert stock.user_attrs["metric"] == "accuracy"


def test_a_notebook_has_the_live_view(trivial, monkeypatch, capsys):
    notebook, display = MagicMock(), MagicMock(HTML=str)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    deltaspace.launch(TRIVIAL, storage=trivial)
    assert display.display.call_args.kwargs == {"display_id": True}
    (shown,) = display.display.return_value.update.call_args.args
    assert shown.startswith("<pre")
    assert "6 of 6 trials" in shown
    assert capsys.readouterr().err == ""


def test_a_study_is_counted_indexed_and_iterated(study):
    assert len(study) == 6
    assert study[3].number == 3
    assert [trial.number for trial in study] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(IndexError, match="6"):
        study[6]
    assert bool(study)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("best_trial", "Use best."), ("trials_dataframe", "Use trials."), ("leaderbord", "leaderboard")],
)
def test_names_of_other_libraries_are_hinted_at(study, name, meant):
    with pytest.raises(AttributeError, match=meant):
        getattr(study, name)


def test_existing_database_may_be_given_by_its_path(study, monkeypatch, tmp_path):
    file = Path(study.storage.removeprefix("sqlite:///"))
    assert len(deltaspace.open_study("sample", storage=str(file))) == 6
    with pytest.raises(deltaspace.errors.StorageUrlError, match="must be a URL"):
        deltaspace.open_study("sample", storage=str(tmp_path / "absent.db"))
