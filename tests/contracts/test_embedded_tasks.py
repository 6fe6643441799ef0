"""Contract of every embedded task, the project's own and those of installed packages."""

from dataclasses import replace

import pytest
from support.foreign_package import run_with_package

from search_space.dimensions import StackKind
from trial_runner.backbones import load_tokenizer, tokenizer_id
from trial_runner.tasks import EMBEDDED_TASKS, SPLITS, TASK_KINDS, Task, prepare_task


@pytest.mark.parametrize("name", EMBEDDED_TASKS)
def test_its_kind_exists_and_its_digest_is_the_same_each_time(name):
    embedded = EMBEDDED_TASKS[name]
    assert embedded.kind in TASK_KINDS
    assert embedded.digest() == embedded.digest()
    assert int(embedded.digest(), 16) >= 0


@pytest.mark.slow
@pytest.mark.parametrize("name", EMBEDDED_TASKS)
def test_it_is_prepared_by_its_name_alone_and_read_once(name, tiny_backbone, tmp_path, monkeypatch):
    embedded = EMBEDDED_TASKS[name]
    kind = TASK_KINDS[embedded.kind]
    family, stack = ("roberta", StackKind.ENCODER) if kind.prompt is None else ("bart", StackKind.ENCODER_DECODER)
    tokenizer = load_tokenizer(str(tiny_backbone(family)))
    task = Task(name=name, kind=embedded.kind, metric=kind.metrics[0])
    reads = []
    counted = replace(embedded, read=lambda: reads.append(1) or embedded.read())
    monkeypatch.setattr("trial_runner.tasks.prepare.EMBEDDED_TASKS", {name: counted})
    first, second = (
        prepare_task(task, tokenizer, tokenizer_id(tokenizer), tmp_path / "cache", stack=stack) for _ in range(2)
    )
    assert reads == [1]
    assert first.name == second.name == name
    assert first.fingerprint == second.fingerprint
    assert [len(second.splits[split]) for split in SPLITS] == [len(first.splits[split]) for split in SPLITS]
    assert all(len(first.splits[split]) for split in SPLITS)


@pytest.mark.slow
def test_an_installed_package_adds_an_embedded_task(tiny_backbone, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    printed = run_with_package(
        folder,
        source="""
from trial_runner.tasks import EmbeddedTask
from trial_runner.tasks.classification.raw import RawSplit
from trial_runner.tasks.splits import RawTask

def read():
    texts = tuple(f"number {n}" for n in range(200))
    labels = tuple("even" if n % 2 == 0 else "odd" for n in range(200))
    return RawTask(splits={"train": RawSplit(columns=(texts,), labels=labels, groups=("",) * 200)})

PARITY = EmbeddedTask(kind="classification", read=read, digest=lambda: "1")
""",
        points={"deltaspace.tasks": "parity = foreign_module:PARITY"},
        script=f"""
from pathlib import Path
from studies.study_file import specification_from_mapping
from trial_runner.backbones import load_tokenizer, tokenizer_id
from trial_runner.tasks import prepare_task

study = specification_from_mapping({{"name": "a", "backbone": "embedded", "task": {{"name": "parity"}}, "budget": 9}})
tokenizer = load_tokenizer({str(tiny_backbone("roberta"))!r})
task = prepare_task(study.task, tokenizer, tokenizer_id(tokenizer), Path("cache"))
print(task.name, task.labels, sum(len(split) for split in task.splits.values()))
""",
    )
    assert printed.strip() == "parity ('even', 'odd') 200"
