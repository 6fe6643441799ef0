"""Which dialogues are read out of rows, and which studies of them make no sense."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.chat_cases import chat_backbone

from trial_runner.errors import TaskError
from trial_runner.tasks import Task, check_task
from trial_runner.tasks.evaluation import answer_of, compute_text
from trial_runner.tasks.generation.split import PreparedTextTask
from trial_runner.tasks.instruction.template import ChatSplit


@pytest.fixture
def prepared(
    tiny_backbone: Callable[..., Path], tokenised: Callable[..., Any], write_splits: Any, tmp_path: Path
) -> Callable[..., PreparedTextTask]:
    backbone = chat_backbone(tiny_backbone("qwen3"), tmp_path / "backbone")

    def make(rows: Callable[[int], dict[str, Any]], **keys: Any) -> PreparedTextTask:
        numbers = {"train": range(6), "validation": range(100, 103), "test": range(200, 203)}
        folder = write_splits(lambda split: [rows(number) for number in numbers[split]])
        task = Task(folder=str(folder), kind="instruction", **({"metric": "rougeL", "max_tokens": 200} | keys))
        found = tokenised(task, backbone)
        assert isinstance(found, PreparedTextTask)
        return found

    return make


def rows_of(task: PreparedTextTask, split: str) -> list[list[int]]:
    found = task.splits[split]
    assert isinstance(found, ChatSplit)
    return [found.rows.ids[start:end].tolist() for start, end in pairwise(found.rows.offsets)]


def messages(number: int) -> dict[str, Any]:
    chat = [{"role": "user", "content": f"ask {number}"}, {"role": "assistant", "content": f"say {number}"}]
    return {"messages": chat, "n": number + 0.5}


def test_the_same_dialogues_are_read_however_they_are_written(prepared):
    plain = prepared(messages)
    pairs = prepared(lambda n: {"q": f"ask {n}", "a": [f"say {n}", "other"]}, source="q", target="a")
    names = prepared(
        lambda n: {"talk": [{"from": "human", "value": f"ask {n}"}, {"from": "gpt", "value": f"say {n}"}]},
        messages="talk",
    )
    for split in ("train", "validation", "test"):
        assert rows_of(pairs, split) == rows_of(names, split) == rows_of(plain, split)
    assert plain.splits["validation"].references == tuple((f"say {100 + n}",) for n in range(3))
    measured = prepared(messages, references="n")
    assert measured.splits["validation"].references == tuple((f"{100.5 + n}",) for n in range(3))
    assert measured.splits["train"].references == ((),) * 6


def test_dialogues_without_an_answer_are_dropped_with_a_note(prepared):
    task = prepared(lambda n: {"messages": messages(n)["messages"][: 1 + (n % 3 != 0)]})
    assert len(task.splits["train"]) == 4
    assert "train: 2 of 6 dialogues are dropped: no answer." in task.notes


def test_unusable_dialogues_are_counted_by_reason(prepared):
    def rows(number: int) -> dict[str, Any]:
        question = "ask " * (80 if number == 3 else 1) + str(number)
        chat = [{"role": "user", "content": question}, {"role": "assistant", "content": " " if number == 1 else "say"}]
        return {"messages": [] if number == 0 else chat}

    task = prepared(rows, max_tokens=100)
    assert len(task.splits["train"]) == 3
    assert [str(one) for one in task.dropped] == [
        "train: 1 of 6 dialogues is dropped: no text.",
        "train: 1 of 6 dialogues is dropped: no answer.",
        "train: 1 of 4 dialogues is dropped: longer than 100 tokens before the answer. Raise task.max_tokens.",
    ]
    assert task.losses == tuple(map(str, task.dropped))
    with pytest.raises(TaskError, match="must have an answer, a message of the role assistant; none has"):
        prepared(lambda n: {"messages": messages(n)["messages"][:1]})
    with pytest.raises(TaskError, match=r"must be a list of messages.* got 'ask 0' in column 'messages'"):
        prepared(lambda n: {"messages": f"ask {n}"})


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"text": ("a",), "metric": "rougeL"}, "no answers to be measured by rougeL. Set metric: loss, or perplexity"),
        ({"text": ("a", "b"), "metric": "loss"}, "must name one column of texts; got a and b"),
        ({"text": ("a",), "metric": "loss", "dialogue": {"system": "s"}}, "must not have system, because plain texts"),
        ({"text": ("a",), "messages": "b", "metric": "loss"}, "got messages and of text"),
        ({"source": "a"}, "must name source and target both"),
        ({"decoding": {"max_new_tokens": 4, "min_new_tokens": 5}}, r"must be from 0 to max_new_tokens \(4\)"),
    ],
)
def test_contradictory_options_are_refused(keys, match):
    with pytest.raises(TaskError, match=match):
        check_task(Task(**{"kind": "instruction", "folder": ".", "metric": "rougeL", **keys}))


def test_answer_is_the_rest_of_the_line_after_the_last_mark():
    text = "First Answer: 4\nno.\nAnswer: 5.\nthat is all"
    assert answer_of(text, "Answer:") == "5."
    assert answer_of(text, None) == text
    assert answer_of("5", "Answer:") == ""
    assert answer_of("5", "Answer:", is_reference=True) == "5"
    assert answer_of("Answer:", "Answer:") == ""
    written, right = [text, "5", "Answer: 6"], [["5"], ["5"], ["Answer: 5", "6"]]
    measured = compute_text(["exact_match", "rougeL"], written, right, answer_after="Answer:")
    assert measured["exact_match"] == pytest.approx(2 / 3)
    assert measured["rougeL"] == compute_text(["rougeL"], written, right)["rougeL"], "a whole text is what it is"
