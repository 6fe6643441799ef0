"""Lists of texts as one text, and the input and target parts of a conversation."""

import pytest
from datasets import Dataset

from trial_runner.backbones import load_tokenizer
from trial_runner.errors import TaskError
from trial_runner.tasks import TASK_KINDS, Task
from trial_runner.tasks.data.linearise import as_one_text, before_the_answer, is_conversation, last_answer
from trial_runner.tasks.generation.raw import read_pairs

CHAT = [{"role": "user", "content": "Hi "}, {"role": "assistant", "content": "Hello"}]


def test_texts_of_a_list_are_joined_and_blank_ones_left_out():
    assert as_one_text(["a ", "", "b"], " | ") == "a | b"
    assert as_one_text(CHAT, "\n") == "user: Hi\nassistant: Hello"
    assert as_one_text("a", "\n") == "a"
    assert as_one_text(["a", "b"], None) == ["a", "b"]
    assert as_one_text([1, 2], " ") == [1, 2]


def test_of_a_conversation_the_last_message_is_the_answer():
    assert (before_the_answer(CHAT), last_answer(CHAT)) == (CHAT[:1], "Hello")
    assert (before_the_answer(["a", "b"]), last_answer(["a", "b"])) == (["a", "b"], ["a", "b"])
    assert not is_conversation([])
    assert not is_conversation([{"role": "user"}])


def test_list_without_a_separator_is_refused_in_one_line(write_rows, tokenised):
    folder = write_rows("train.jsonl", [{"text": ["yes", f"no {n}"], "label": n % 2} for n in range(60)])

    def prepare(join):
        return tokenised(Task(folder=str(folder), text=("text",), label="label", join=join), "embedded")

    with pytest.raises(TaskError, match=r"a list of 2 in column 'text' of split 'train', row 1\. .* task\.join"):
        prepare(None)
    one, other = prepare(" and "), prepare(" or ")
    assert one.fingerprint != other.fingerprint
    split = one.splits["train"]
    assert "yes and no" in load_tokenizer("embedded").decode(split.input_ids[: split.offsets[1]])


SYSTEM = {"role": "system", "content": "Be."}
MORE = [*CHAT, {"role": "user", "content": "Bye"}]
ASKED = "user: Hi\nassistant: Hello\nuser: Bye"
TEXTS = {"kind": "summarisation", "folder": ".", "source": "messages", "join": "\n"}


@pytest.mark.parametrize(
    ("target", "value", "source", "learned"),
    [
        ("messages", CHAT, "user: Hi", "Hello"),
        ("to", ["a", "b", "c"], "a\nb\nc", "d"),  # three texts, not a triple
        ("to", CHAT, "user: Hi\nassistant: Hello", "d"),  # what is learned stands elsewhere
    ],
)
def test_a_text_task_reads_a_conversation_up_to_its_answer(target, value, source, learned):
    rows = read_pairs(Dataset.from_list([{"messages": value, "to": "d"}]), Task(**TEXTS, target=target), "train")
    assert (rows.sources, rows.targets, rows.references) == ((source,), (learned,), ((learned,),))


@pytest.mark.parametrize(
    ("keys", "column", "value", "read"),
    [
        (TEXTS | {"target": "messages"}, "messages", CHAT, "user: Hi"),
        (TEXTS | {"target": "messages"}, "messages", MORE, ASKED),
        (TEXTS | {"target": "messages"}, "messages", [SYSTEM, *MORE], f"system: Be.\n{ASKED}"),
        (TEXTS | {"target": "to"}, "messages", CHAT, "user: Hi\nassistant: Hello"),
        (TEXTS | {"target": "to"}, "messages", ["a", "b", "c"], "a\nb\nc"),
        (TEXTS | {"target": "to", "join": None}, "messages", ["a", "b", "c"], "| a : b : c"),
        ({"folder": ".", "text": ("text",), "join": " / "}, "text", ["a ", "b"], "a / b"),
        ({"folder": ".", "text": ("text",)}, "text", ["a ", "b"], ["a ", "b"]),
        ({"kind": "question_answering", "folder": ".", "join": " "}, "context", CHAT, "user: Hi assistant: Hello"),
        ({"kind": "question_answering", "folder": ".", "join": " "}, "question", ["a", "b"], ["a", "b"]),
    ],
)
def test_a_prediction_reads_lists_as_training_did(keys, column, value, read):
    task = Task(**keys)
    assert TASK_KINDS[task.kind].as_read(task, column, value) == read
