"""The study file: what is accepted, what is refused and how it is said."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest
import yaml

from search_space.published import COMPARED, METHODS
from search_space.space.options import SpaceOptions
from studies.errors import SpecificationError
from studies.launch.study_creation import difference
from studies.objectives import SizeMeasure
from studies.pruning.rungs import Protected, Rule, RungPlan
from studies.records import ExampleCounts
from studies.study_file import (
    Specification,
    parse_override,
    read_specification,
    specification_from_mapping,
)
from studies.study_file.fields import OWN_SAMPLERS, parse_duration
from studies.study_file.parser import example_names, study_file
from studies.study_file.recorded_specification import BegunSpecification
from studies.study_file.sections import SearchSection
from trial_runner.requests import TrainingPlan
from trial_runner.tasks import TASK_KINDS, Decoding, Grouping
from trial_runner.tasks.kind import Cut
from trial_runner.tasks.splits import Dropped

MINIMAL = {"name": "smoke", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "0.5%"}
EXAMPLES = Path(__file__).parents[3] / "studies" / "examples"


def minimal(**changes: object) -> Specification:
    """Return the smallest study file with these changes."""
    return specification_from_mapping({**MINIMAL, **changes}, origin="s.yaml")


def read_back(study: Specification) -> Specification:
    """Return a specification read from its stored JSON."""
    return Specification.from_json(json.loads(json.dumps(study.as_json())))


def problems(changes: dict[str, object]) -> list[str]:
    """Return the problems of the smallest study file with these changes."""
    try:
        specification_from_mapping({**MINIMAL, **changes}, origin="s.yaml")
    except SpecificationError as error:
        return str(error).splitlines()[1:]
    return []


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_backbone_may_have_a_weight_format(tmp_path):
    plain = minimal()
    assert plain.as_json()["backbone"] == "embedded"
    spelled = minimal(backbone={"name": "embedded"})
    assert spelled.search_identity() == plain.search_identity()
    held = {"name": "embedded", "dtype": "bf16", "quantization": "nf4"}
    given = minimal(backbone=held)
    assert given.as_json()["backbone"] == held
    assert Specification.from_json(given.as_json()) == given
    assert difference(plain.search_identity(), given.search_identity()) == [
        'backbone: "embedded" -> (absent)',
        'backbone.name: (absent) -> "embedded"',
        'backbone.dtype: (absent) -> "bf16"',
        'backbone.quantization: (absent) -> "nf4"',
    ]
    file = written(tmp_path, yaml.safe_dump({**MINIMAL, "backbone": "."}))
    overridden = read_specification(file, {"backbone.quantization": "int8"})
    assert (overridden.backbone.name, overridden.backbone.quantization) == (str(tmp_path), "int8")
    assert str(overridden.backbone) == f"{tmp_path} (int8)"


def test_invalid_weight_format_is_refused():
    def of(**held: object) -> dict[str, object]:
        return {"backbone": {"name": "embedded", **held}}

    assert problems(of(quantization="fp4")) == [
        "backbone.quantization: must be 'none', 'nf4', 'int8' or 'int4'; got 'fp4'"
    ]
    shards = {"fleet": {"worker": {"shards": 2}, "pack": 1}}
    assert problems({**of(quantization="nf4"), **shards}) == [
        "fleet.worker.shards: must be 1 where backbone.quantization is nf4, whose codes are not shared out; got 2"
    ]
    assert problems({**shards, "space": {"attention_forms": ["lowrank", "dora"]}}) == [
        "space.attention_forms: must leave out what is computed of whole weights where fleet.worker.shards is 2; "
        "got dora"
    ]
    assert problems({"fleet": {"worker": {"shards": 2}}}) == [
        "fleet.pack: must be a number where fleet.worker.shards is 2, of the trials of each; got auto. "
        "deltaspace plan says how many fit"
    ]
    assert problems({"fleet": {"worker": {"shards": 0}}}) == [
        "fleet.worker.shards: must be a whole number from 1 to 1,000,000; got 0"
    ]
    assert problems(of(dtype="fp16")) == ["backbone.dtype: must be 'auto', 'fp32' or 'bf16'; got 'fp16'"]
    assert problems(of(type="bf16")) == ["backbone.type: unknown key; did you mean 'dtype'?"]
    assert problems({"backbone": {"dtype": "bf16"}}) == ["backbone.name: must be given"]
    assert problems({"backbone": 3}) == ["backbone: must be a mapping of keys to values; got 3"]
    assert problems({**of(dtype="bf16"), "training": {"precision": "fp32"}}) == [
        "training.precision: must be bf16 or auto where backbone.dtype is bf16, whose products are of bf16; got fp32"
    ]


def test_four_keys_are_enough_and_the_rest_has_defaults():
    study = minimal()
    assert (study.trials, study.seed) == (40, 0)
    assert (study.training.steps, study.training.batch_size) == (200, 32)
    assert study.rung_steps == (50, 100, 200)
    assert study.search.sampler == "factored"
    assert (study.fleet.backend, study.fleet.workers, study.fleet.pack) == ("ray", "auto", "auto")


def test_the_defaults_of_the_search_are_those_of_the_space():
    assert minimal().space_options == SpaceOptions()


def test_every_option_of_the_space_can_be_set_in_the_study_file():
    values = {
        "activations": ["tanh"],
        "scales": [3],
        "scale_per": ["channel"],
        "key_widths": [None, 6],
        "norms": ["none", "in"],
        "biases": ["with", "without"],
        "inits": ["houlsby"],
        "reparameterizations": [None, 64],
        "products": [2, 4],
        "factors": [1, None],
        "sharing": ["own"],
    }
    space = {
        "attention_forms": ["phm", "diag"],
        "ffn_forms": ["lowrank"],
        "gates": ["add", "inducer", "scale_learned"],
        "layers": ["range", "spindle", "pattern"],
        "sites": "separate",
        "edits_per_side": [1, 2],
        "size": [0.125, 1],
        "max_extra_flops": 1_000_000,
        "mergeable": True,
        "exportable": "peft",
        "lora_dropout": [0, 0.1],
    }
    rates = {"full": [1e-5, 1e-4], "head": [1e-4, 1e-2]}
    search = {"published": ["intrinsic_said:dint=200"]}
    study = minimal(space={**space, "values": values, "learning_rates": rates}, search=search)
    assert read_back(study) == study
    assert study.space_options.learning_rates["full"] == (1e-5, 1e-4)
    assert study.space_options.head_learning_rates == (1e-4, 1e-2)
    for name, value in {**space, **values, **search}.items():
        owner = study.space_options.values if name in values else study.space_options
        assert getattr(owner, name) == (tuple(value) if isinstance(value, list) else value), name
    default, fields = SpaceOptions(), [one.name for one in dataclasses.fields(SpaceOptions)]
    same = [name for name in fields if getattr(default, name) == getattr(study.space_options, name)]
    # rank and methods take the place of others; the rest are no keys of a study file
    assert same == [
        "rank",
        "methods",
        "published_scale",
        "near_duplicates",
        "attention_share",
        "split",
        "learning_rates_of",
    ]


def test_default_rates_rise_as_steps_fall():
    def rates(steps: int) -> dict[str, tuple[float, float]]:
        space = {"learning_rates": {"const": [1e-3, 1e-2]}}
        study = minimal(training={"steps": steps}, space=space)
        assert read_back(study) == study
        return dict(study.space_options.learning_rates)

    ranges = {1: (0.0016, 0.024), 100: (0.00141, 0.0212), 200: (0.001, 0.015), 800: (0.0005, 0.0075)}
    assert {steps: rates(steps)["lowrank"] for steps in ranges} == ranges
    assert rates(100)["const"] == (1e-3, 1e-2)
    assert rates(200) == SpaceOptions().learning_rates


@pytest.mark.parametrize("key", sorted(MINIMAL))
def test_a_required_key_that_is_missing_is_named(key):
    with pytest.raises(SpecificationError, match=rf"(?m)^{key}: must be given$"):
        specification_from_mapping({other: value for other, value in MINIMAL.items() if other != key})


@pytest.mark.parametrize("key", ["training", "pruning", "space", "search", "fleet"])
def test_empty_section_has_its_defaults(key):
    assert problems({key: None}) == []


def test_all_problems_are_listed_with_paths_and_values():
    training = {"steps": 1.5, "precision": "fp8", "clip_norm": -1}
    fleet = {"workers": "many", "time_budget": "soon"}
    assert problems({"trials": 0, "seed": True, "training": training, "fleet": fleet}) == [
        "trials: must be at least 1; got 0",
        "seed: must be a number; got True",
        "training.steps: must be a whole number; got 1.5",
        "training.clip_norm: must be above 0; got -1",
        "training.precision: must be 'auto', 'fp32' or 'bf16'; got 'fp8'",
        "fleet.workers: must be auto or a whole number from 1 to 1,000,000; got 'many'",
        "fleet.time_budget: must be a time above 0, such as 90s, 5m, 1h30m or a number of seconds; got 'soon'",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"tirals": 3}, "tirals: unknown key; did you mean 'trials'?"),
        ({"training": {"batchsize": 3}}, "training.batchsize: unknown key; did you mean 'batch_size'?"),
        ({"steps": 3}, "steps: unknown key; did you mean 'training.steps'?"),
        (
            {"fleet": {"zzz": 3}},
            "fleet.zzz: unknown key; known here, the nearest first: backend, workers, pack, time_budget, worker, "
            "artefacts",
        ),
        ({3: "x"}, "the file: keys must be text; got 3"),
    ],
)
def test_unknown_key_error_names_the_nearest_key(changes, line):
    assert line in problems(changes)


TRANSLATION = {"kind": "translation", "folder": ".", "source": "en", "target": "de"}
QUESTIONS = {"kind": "question_answering", "folder": "."}


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ({"kind": "translatoin"}, "task.kind: must be 'classification', 'regression', 'summarisation', "),
        ({"metric": "blue"}, "task: metric of a translation task must be one of bleu, .* 'blue'. Did you mean 'bleu'"),
        ({"metric": "rouge1"}, "task: metric of a translation task must be one of bleu, .* got 'rouge1'"),
        ({"questions": {"question": "q"}}, "task: must not have questions, because its kind is translation"),
        ({"max_target_tokens": 3}, "task.max_target_tokens: must be at least 4; got 3"),
        ({"label_smoothing": 1}, "task.label_smoothing: must be below 1; got 1"),
        ({"decoding": {"beam": 2}}, "task.decoding.beam: unknown key; did you mean 'beams'"),
        ({"decoding": {"min_new_tokens": 70}}, r"task: min_new_tokens must be from 0 to max_new_tokens \(64\); got 70"),
        ({"splits": {"test": {"A b": "x"}}}, "task: a group must be named with a-z, 0-9 and '_'; got 'A b'"),
        ({"splits": {"test": []}}, "task.splits.test: must be the name of a split, or a mapping"),
        ({"group": {"values": {"seen": [True]}}}, "task.group.column: must be given"),
        ({"group": {"column": "g", "values": {"seen": [1.5]}}}, "task.group.values.seen: must be a list of texts"),
        ({"languages": ["en"]}, "task.languages"),
    ],
)
def test_a_text_task_that_cannot_be_is_refused_on_one_line(task, line):
    (problem,) = problems({"task": {**TRANSLATION, **task}})
    assert re.match(line, problem)


def test_text_task_becomes_the_runners_task():
    task = {
        **TRANSLATION,
        "references": "refs",
        "group": {"column": "seen", "values": {"seen": True, "unseen": [False, 0]}},
        "instruction": "translate:",
        "languages": ["en_XX", "de_DE"],
        "splits": {"test": {"near": "a", "far": "b"}},
        "metric": "ter",
        "metrics": ["ter", "loss"],
        "max_tokens": 30,
        "max_target_tokens": 20,
        "label_smoothing": 0.1,
        "decoding": {"beams": 3, "min_new_tokens": 2, "length_penalty": 0.6, "no_repeat_ngram": 3},
        "examples": {"train": 5, "validation": 4},
    }
    study = minimal(task=task)
    assert study.task.decoding == Decoding(beams=3, min_new_tokens=2, length_penalty=0.6, no_repeat_ngram=3)
    assert study.task.most_new_tokens == 20
    assert study.task.group == Grouping(column="seen", values={"seen": ("true",), "unseen": ("false", "0")})
    assert (study.task.title, study.task.metrics) == (Path.cwd().name, ("ter", "loss"))
    stored = json.loads(json.dumps(study.as_json()))["task"]
    parsed = {"group": {"column": "seen", "values": {"seen": ["true"], "unseen": ["false", "0"]}}, "decoding": ANY}
    assert {key: stored[key] for key in task} == {**task, **parsed}
    assert read_back(study) == study


def test_questions_have_their_usual_columns_unless_others_are_named():
    usual = minimal(task=QUESTIONS).task
    named = minimal(task={**QUESTIONS, "questions": {"context": "story"}}).task
    assert usual.metric == "token_f1"
    columns = TASK_KINDS["question_answering"].read_columns
    assert columns(usual) == ("context", "question")
    assert columns(named) == ("story", "question")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("published", value) for value in (["lora_q"], "some", ["bitfit", "bitfit"], ["lora_qv:rank"])),
        *(("published", value) for value in (["lora_qv:l=3"], ["lora_qv:r=8", "lora_qv:r=8"])),
        *(("attention_forms", value) for value in (["bottelneck"], ["const", "const"], ["prompt"])),
        *(("gates", value) for value in (["lse_convex"], ["add", "mul"])),
        *(("learning_rates", {"bottleneck": value}) for value in ([0.1], [0.1, float("inf")])),
        ("learning_rates", {"adapter": [0.1, 0.2]}),
        ("sites", "each"),
        *(("layers", value) for value in (["some"], [])),
        ("values", {"activations": []}),
        ("values", {"scales": [0]}),
        ("values", {"scale_per": ["token"]}),
        ("values", {"key_widths": [0]}),
        ("values", {"norms": ["both"]}),
        ("values", {"biases": [True]}),
        ("values", {"inits": ["lora", "lora"]}),
        ("values", {"reparameterizations": [1.5]}),
        ("values", {"products": [None]}),
        ("values", {"factors": ["full"]}),
        ("values", {"sharing": ["some"]}),
    ],
)
def test_a_search_that_cannot_be_is_refused(key, value):
    section = "search" if key == "published" else "space"
    (line,) = problems({section: {key: value}})
    assert line.startswith(section)


def test_dropped_rows_are_recorded_and_kept_when_a_study_continues():
    begun = BegunSpecification.of(minimal())
    dropped = (Dropped(split="train", count=2, of=9, reason="no label"),)
    cuts = (Cut(split="test", what="examples", count=1, of=3, tokens=64),)
    stored = json.loads(json.dumps(begun.model_copy(update={"dropped": dropped, "cuts": cuts}).as_json()))
    found = BegunSpecification.of(begun, BegunSpecification.from_json(stored))
    assert (found.dropped, found.cuts) == (dropped, cuts)
    assert found.search_identity() == begun.search_identity()


@pytest.mark.parametrize("key", ["lessons", "made_table", "dropped", "cuts"])
def test_values_that_a_launch_computes_cannot_be_set(key):
    (line,) = problems({key: None})
    assert line.startswith(f"{key}: unknown key")


def test_a_first_rung_past_the_last_step_is_refused():
    assert problems({"pruning": {"first_rung_steps": 300}}) == [
        "pruning.first_rung_steps: must be at most training.steps (200); got 300"
    ]


@pytest.mark.parametrize(
    ("pruning", "training", "rungs"),
    [
        ({}, {"steps": 200}, (50, 100, 200)),
        ({}, {"steps": 64}, (16, 32, 64)),
        ({"first_rung_steps": None}, {"steps": 200}, (200,)),
        ({"first_rung_steps": 30}, {"steps": 200}, (30, 60, 200)),
        ({"first_rung_steps": 200}, {"steps": 200}, (200,)),
        ({"first_rung_steps": 150}, {"steps": 200}, (150, 200)),  # one that is given may be beyond half of the way
        # none is shortly before the end
        *(({}, {"steps": rungs[-1]}, rungs) for rungs in ((37, 74, 150), (17, 34, 70), (3,), (1,))),
        # nor before a trial has learned from as many examples as are measured, unless it is given
        *(({}, {"steps": steps, "batch_size": 8}, (steps,)) for steps in (20, 63)),
        ({}, {"steps": 64, "batch_size": 8}, (32, 64)),
        ({}, {"steps": 100, "batch_size": 8}, (32, 100)),
        ({}, {"steps": 200, "batch_size": 8}, (50, 100, 200)),
        ({}, {"steps": 100, "batch_size": 7}, (37, 100)),
        ({}, {"steps": 16, "batch_size": 32}, (8, 16)),
        ({"first_rung_steps": 5}, {"steps": 20, "batch_size": 8}, (5, 10, 20)),
    ],
)
def test_rungs_differ_by_the_reduction_and_end_at_the_last_step(pruning, training, rungs):
    study = minimal(pruning=pruning, training=training)
    assert study.rung_steps == rungs
    assert study.rung_plan().steps == rungs[:-1]
    assert study.training_plan().evaluate_at_steps == rungs


@pytest.mark.parametrize("pruning", [{}, {"rule": "none"}, {"first_rung_steps": 5}])
@pytest.mark.parametrize("warmup", [0.1, 0.3])
def test_last_rung_is_at_most_half_of_the_steps(pruning, warmup):
    for steps in range(10, 1001, 3):
        training = {"steps": steps, "warmup_fraction": warmup}
        study = minimal(pruning=pruning, training=training)
        *rungs, last = study.rung_steps
        assert last == steps
        assert all(2 * rung <= steps for rung in rungs)
        # nor does one lack that would be
        assert not rungs or rungs[-1] * 4 > steps


@pytest.mark.parametrize(
    ("published", "names"),
    [
        ("compared", COMPARED),
        ("none", ()),
        ("all", tuple(METHODS)),
        (["bitfit", "lora_qv"], ("bitfit", "lora_qv")),
        (["lora_qv:r=8,s=2", "full_finetuning"], ("lora_qv:r=8,s=2", "full_finetuning")),
    ],
)
def test_published_methods_are_chosen_by_a_word_or_by_name(published, names):
    study = minimal(search={"published": published})
    assert study.space_options.published_points == names


def test_study_file_accepts_every_sampler():
    from studies.search.samplers import SAMPLERS

    assert tuple(SAMPLERS)[: len(OWN_SAMPLERS)] == OWN_SAMPLERS
    for sampler in SAMPLERS:
        assert SearchSection(sampler=sampler).sampler == sampler
    (line,) = problems({"search": {"sampler": "none"}})
    assert f"must be among {', '.join(SAMPLERS)}; got 'none'" in line


def test_a_length_of_time_is_read_as_people_write_it():
    texts = {"90s": 90, "5m": 300, "1h30m": 5400, "1h": 3600, " 1M 5S ": 65, "300": 300, 12.5: 12.5, "1.5h": 5400}
    assert {text: parse_duration(text) for text in texts} == texts


@pytest.mark.parametrize(
    "text", ["", "0", "soon", "5 apples", "-5m", "m5", 0, -1, True, None, float("nan"), float("inf")]
)
def test_invalid_length_of_time_is_refused(text):
    with pytest.raises(ValueError, match="1h30m"):
        parse_duration(text)


def test_numbers_that_yaml_takes_for_text_are_still_numbers(tmp_path):
    path = written(tmp_path, yaml.safe_dump(MINIMAL) + "training: {head_learning_rate: 1e-3}\n")
    assert read_specification(path).training.head_learning_rate == 1e-3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: [x", "line 1, column 9"),
        ("name: x\nname: y", "line 2, column 1: key 'name' stands twice"),
        ("task:\n  name: x\n  name: y", "key 'name' stands twice"),
        ("", "got nothing"),
        ("- x", "got a list"),
        ("just words", "got a str"),
        ("name: !!python/object:os.system x", "could not determine a constructor"),
        ("\tname: x", "line 1"),
        *((f"name: x\nseed: !!{tag} x", "must be YAML; ") for tag in ("timestamp", "bool", "int", "float")),
    ],
)
def test_a_file_that_is_no_mapping_is_refused_on_one_line(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused_on_one_line(tmp_path):
    with pytest.raises(SpecificationError, match=r"there is no .*nowhere\.yaml"):
        read_specification(tmp_path / "nowhere.yaml")
    with pytest.raises(SpecificationError, match="must be readable"):
        read_specification(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("name: ä".encode("latin-1"))
    with pytest.raises(SpecificationError, match="UTF-8"):
        read_specification(tmp_path / "latin.yaml")
    (tmp_path / "big.yaml").write_text("#" * 100_001)
    with pytest.raises(SpecificationError, match="at most 100 kB"):
        read_specification(tmp_path / "big.yaml")
    with pytest.raises(SpecificationError, match="must be a regular file"):
        read_specification("/dev/zero")


def folder_study(folder: str) -> str:
    return yaml.safe_dump({**MINIMAL, "task": {"folder": folder, "text": ["a", "b"], "label": "c"}})


def test_folder_is_relative_to_study_file_or_working_directory(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = written(tmp_path, folder_study("data"))
    source = read_specification(file).task
    assert (source.folder, source.text, source.label) == (str(tmp_path / "data"), ("a", "b"), "c")
    assert read_specification(file, {"task.folder": "mine"}).task.folder == str(tmp_path / "elsewhere" / "mine")


def test_missing_folder_is_listed_with_other_problems(tmp_path):
    path = written(tmp_path, folder_study("nowhere") + "trials: 0\n")
    with pytest.raises(SpecificationError) as caught:
        read_specification(path)
    assert "2 problems" in str(caught.value)
    assert f"task.folder: must be an existing folder; got '{tmp_path / 'nowhere'}'" in str(caught.value)


@pytest.mark.parametrize(
    ("backbone", "is_path"), [("embedded", False), ("roberta-base", False), ("mine", True), ("./x", True)]
)
def test_backbone_is_a_path_only_if_it_exists_or_looks_like_one(tmp_path, backbone, is_path):
    (tmp_path / "mine").mkdir()
    study = read_specification(written(tmp_path, yaml.safe_dump({**MINIMAL, "backbone": backbone})))
    assert study.backbone.name == (str(tmp_path / backbone) if is_path else backbone)


def test_overrides_replace_values_of_the_file(tmp_path):
    path = written(tmp_path, yaml.safe_dump({**MINIMAL, "training": {"steps": 100}}))
    study = read_specification(path, {"training.steps": 300, "fleet.time_budget": "5m", "trials": "7"})
    assert (study.training.steps, study.fleet.time_budget, study.trials) == (300, 300.0, 7)


def test_a_wrong_override_is_a_problem_like_any_other(tmp_path):
    path = written(tmp_path, yaml.safe_dump(MINIMAL))
    with pytest.raises(SpecificationError, match=r"training\.stpes: unknown key; did you mean 'steps'\?"):
        read_specification(path, {"training.stpes": 3})
    with pytest.raises(SpecificationError, match=r"trials: must be a mapping|trials: must be a whole number"):
        read_specification(path, {"trials.x": 3})


def test_an_override_is_a_key_path_and_a_yaml_value():
    texts = {"a.b=3": ("a.b", 3), "a=[x, y]": ("a", ["x", "y"]), "a=null": ("a", None), "a=b=c": ("a", "b=c")}
    assert {text: parse_override(text) for text in texts} == texts
    assert parse_override("a=") == ("a", None)


def test_the_betas_of_a_study_reach_its_training_and_define_the_search():
    usual = minimal()
    own = minimal(training={"betas": [0.8, 0]})
    plain = TrainingPlan(steps=1, batch_size=1, evaluate_at_steps=(1,))
    assert usual.training_plan().betas == plain.betas
    assert own.training_plan().betas == (0.8, 0.0)
    assert read_back(own) == own
    assert difference(usual.search_identity(), own.search_identity()) == ["training.betas: [0.9, 0.999] -> [0.8, 0.0]"]


@pytest.mark.parametrize(
    "betas", [[0.9], [0.9, 0.99, 0.9], [0.9, 1], [-0.1, 0.9], [0.9, float("nan")], [True, 0.9], ["a", 0.9], 0.9, None]
)
def test_betas_that_cannot_be_are_refused_on_one_line(betas):
    got = "nothing" if betas is None else repr(betas)
    assert problems({"training": {"betas": betas}}) == [
        f"training.betas: must be two numbers from 0 to below 1, such as [0.9, 0.98]; got {got}"
    ]


def test_the_number_of_trials_and_the_fleet_do_not_define_the_search():
    first = minimal()
    second = minimal(trials=99, fleet={"backend": "inline", "pack": 1})
    assert difference(first.search_identity(), second.search_identity()) == []
    assert difference(first.as_json(), second.as_json()) == [
        "trials: 40 -> 99",
        'fleet.backend: "ray" -> "inline"',
        'fleet.pack: "auto" -> 1',
    ]


def test_the_same_budget_written_otherwise_is_the_same_search():
    first, *others = (minimal(budget=budget).search_identity() for budget in ("0.5%", ".5%", "0.50 %"))
    assert others == [first, first]
    shown = [minimal(budget=budget).search_identity()["budget"] for budget in (".5%", 600_000, "6.7%")]
    assert shown == ["0.5%", "600,000", "6.7%"]


@pytest.mark.parametrize(("recorded", "written"), [(0.005, "0.5%"), ("0.005", "0.5%"), (0.067, "6.7%"), (1.0, 1)])
def test_recorded_bare_fraction_equals_its_percentage(recorded, written):
    begun = Specification.from_json({**minimal().as_json(), "budget": recorded})
    assert begun.search_identity() == minimal(budget=written).search_identity()


@pytest.mark.parametrize("budget", [0.5, "0.5", 0.999, 1.0])
def test_bare_fraction_is_no_budget(budget):
    must = "budget: must be a percentage such as 0.5% or a number of parameters"
    shown = f"{float(budget):g}" if budget != 1.0 else "1.0"
    assert problems({"budget": budget}) == [f"{must}; got {budget!r}. Write {shown}% or {100 * float(budget):g}%"]


def test_the_shipped_examples_are_valid(tmp_path):
    assert len(example_names()) == 10
    embedded = {"docstrings", "intrinsic_dimension"}
    for name in example_names():
        study = read_specification(study_file(name), {} if name in embedded else {"task.folder": str(tmp_path)})
        assert study.task.folder == (None if name in embedded else str(tmp_path))
        assert study.name == name.replace("_", "-")


def test_a_file_of_the_user_goes_before_an_example_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert study_file("docstrings") == study_file("docstrings.yaml") == EXAMPLES / "docstrings.yaml"
    assert study_file("./docstrings.yaml") == Path("docstrings.yaml")
    assert study_file("mine.yaml") == Path("mine.yaml")
    (tmp_path / "docstrings").mkdir()  # data in a folder of that name do not hide it
    assert study_file("docstrings") == EXAMPLES / "docstrings.yaml"
    (tmp_path / "mine").mkdir()
    assert study_file("mine") == Path("mine")
    for name in ("docstrings.yaml", "banking77"):
        (tmp_path / name).touch()
        assert study_file(name) == Path(name)


def test_reading_a_study_file_imports_no_heavy_library():
    script = (
        "import sys\n"
        "from studies.study_file import read_specification\n"
        f"read_specification({str(EXAMPLES / 'docstrings.yaml')!r})\n"
        "heavy = ('torch', 'ray', 'transformers', 'optuna', 'sqlalchemy', 'datasets', 'sklearn')\n"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("objectives", "size"), [(["score"], None), (["score", "extra_flops"], SizeMeasure.EXTRA_FLOPS)]
)
def test_rungs_compare_trials_by_the_size_that_is_minimized(objectives, size):
    assert minimal(search={"objectives": objectives}).rung_plan().size is size


@pytest.mark.parametrize(("warmup", "rungs"), [(0.06, (50, 100)), (0.2, (80,))])
@pytest.mark.parametrize("rule", [Rule.MEDIAN, Rule.NONE])
def test_the_first_rung_is_a_quarter_but_not_within_twice_the_warm_up(warmup, rungs, rule):
    given = {} if rule is Rule.MEDIAN else {"pruning": {"rule": str(rule)}}
    study = minimal(**given, training={"steps": 200, "warmup_fraction": warmup})
    pruning = {"rule": rule, "protected": Protected.BEST, "stops_collapsed": True}
    assert study.rung_plan(750) == RungPlan(steps=rungs, examples=750, measured=rungs[0] * 32 // 2, **pruning)


@pytest.mark.parametrize(
    ("pruning", "training", "expected"),
    [
        ({}, {"steps": 200, "batch_size": 16}, 400),  # 50 steps of 16 before the first rung
        ({}, {"steps": 200, "batch_size": 2}, 256),
        ({"first_rung_steps": 100}, {"steps": 200, "batch_size": 16}, 800),
        ({"examples": "all"}, {"steps": 200, "batch_size": 16}, None),
        ({"examples": "300"}, {"steps": 200, "batch_size": 16}, 300),
    ],
)
def test_at_rungs_half_as_many_examples_are_measured_as_were_learned_from(pruning, training, expected):
    study = minimal(pruning=pruning, training=training)
    assert study.rung_examples == study.training_plan().rung_examples == expected
    counts = study.rung_plan(750).example_counts
    assert counts == ExampleCounts(whole=750, rungs=min(750, expected or 750))


@pytest.mark.parametrize("value", ["auto", 0, "0", 12, "12"])
def test_replicates_are_auto_or_a_count_and_may_be_none(value):
    study = minimal(search={"replicates": value})
    assert study.search.replicates == (value if value == "auto" else int(str(value)))


@pytest.mark.parametrize(
    ("section", "key", "value", "must"),
    [
        *(("search", "replicates", value, "auto or a whole number from 0") for value in (-1, True, 1.5, "many", None)),
        ("pruning", "examples", 0, "auto, all or a whole number from 1"),
        ("pruning", "first_rung_steps", "all", "auto or a whole number from 1"),
    ],
)
def test_other_counts_are_refused(section, key, value, must):
    got = "nothing" if value is None else repr(value)
    assert problems({section: {key: value}}) == [f"{section}.{key}: must be {must} to 1,000,000; got {got}"]


@pytest.mark.parametrize("key", ["task.folder", "fleet.artefacts", "backbone"])
@pytest.mark.parametrize("path", ["data\0", "~no_such_user_here/data", "x" * 5000])
def test_impossible_path_raises_no_system_error(tmp_path, key, path):
    file = tmp_path / "study.yaml"
    file.write_text(study_file("docstrings").read_text())
    section, _, name = key.rpartition(".")
    value = {section: {"folder": path, "text": "t", "label": "l"} if name == "folder" else {name: path}}
    content = {**yaml.safe_load(file.read_text()), **(value if section else {name: path})}
    file.write_text(yaml.safe_dump(content))
    if name == "folder":
        with pytest.raises(SpecificationError, match=r"task\.folder: must be an existing folder"):
            read_specification(file)
    else:
        assert read_specification(file).name == "docstrings"
