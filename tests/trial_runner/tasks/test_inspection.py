"""Tasks inferred from columns: of common data sets, and of constructed rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks.data.column_kinds import ColumnKind, look_at
from trial_runner.tasks.inspection import guess

LONG = "a text of more words than any label has, so that it is one"
Rows = Sequence[Mapping[str, Any]]


def guessed(rows: Rows, kind: str | None = None, **given: Any) -> dict[str, Any]:
    return guess(look_at(datasets.Dataset.from_list(list(rows))), kind, given)


def many(count: int = 40, **values: Any) -> list[dict[str, Any]]:
    """Return rows whose values are functions of their number."""
    return [{name: value(n) if callable(value) else value for name, value in values.items()} for n in range(count)]


def text(n: int) -> str:
    return f"{LONG} {n}"


def number(n: int) -> int:
    return n


def parity(n: int) -> int:
    return n % 2


def mood(n: int) -> str:
    return ("good", "bad")[n % 2]


def chat(n: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": text(n)}, {"role": "assistant", "content": f"so it is: {n}"}]


PAIR = ["premise", "hypothesis"]
SICK = many(premise=text, hypothesis=text, label=lambda n: n % 3, relatedness=lambda n: n / 7)
BANKING = many(text=text, label_text=lambda n: f"word_{n % 5}", label=lambda n: n % 5)
TALKS = many(dialogue=lambda n: ["hello there", f"bye {n}"], emotion=mood)
TRIPLES = many(
    category=mood,
    modified_triple_sets=lambda n: [f"a{n} | is | b", "b | has | c"][: n % 2 + 1],
    references=lambda n: [text(n), LONG],
)
SQUAD = many(context=text, question=text, answers=lambda n: {"text": [str(n)], "answer_start": [0]})
PROMPTS = many(prompt=text, completion=text)

CASES: dict[str, tuple[Rows, str, dict[str, Any]]] = {
    "SST-2": (many(sentence=text, label=parity, idx=number), "classification", {"text": "sentence", "label": "label"}),
    "SICK": (SICK, "classification", {"text": PAIR, "label": "label"}),
    "banking77": (BANKING, "classification", {"text": "text", "label": "label_text"}),
    "unusual names": (many(opinion=text, verdict=mood), "classification", {"text": "opinion", "label": "verdict"}),
    "dialogues": (TALKS, "classification", {"text": "dialogue", "label": "emotion", "join": "\n"}),
    "XSum": (
        many(document=lambda n: text(n) * 9, summary=text, id=str),
        "summarisation",
        {"source": "document", "target": "summary"},
    ),
    "WebNLG": (TRIPLES, "data_to_text", {"source": "modified_triple_sets", "target": "references"}),
    "SQuAD": (SQUAD, "question_answering", {"questions": {key: key for key in ("context", "question", "answers")}}),
    "a chat": (many(messages=chat), "instruction", {"messages": "messages"}),
    "STS-B": (
        many(sentence1=text, sentence2=text, label=lambda n: n / 8, idx=number),
        "regression",
        {"text": ["sentence1", "sentence2"], "label": "label"},
    ),
    "a score": (many(id=number, text=text, score=lambda n: n / 3), "regression", {"text": "text", "label": "score"}),
    "half stars": (many(text=text, stars=lambda n: (n % 10 + 1) / 2), "regression", {"text": "text", "label": "stars"}),
    "prompts": (PROMPTS, "summarisation", {"source": "prompt", "target": "completion"}),
}


@pytest.mark.parametrize("case", CASES)
def test_task_of_a_data_set_is_inferred_from_its_columns(case):
    rows, kind, keys = CASES[case]
    assert guessed(rows) == {"kind": kind, **keys}


def test_named_scale_is_regression_unless_kind_is_given():
    keys = {"kind": "regression", "text": PAIR, "label": "relatedness"}
    assert guessed(SICK, label="relatedness") == guessed(SICK, "regression") == keys
    assert guessed(SICK, "classification", label="relatedness") == {**keys, "kind": "classification"}


def test_dialogues_are_a_text_task_on_request():
    found = guessed(many(messages=chat), "summarisation", source="messages", target="messages")
    assert found == {"kind": "summarisation", "source": "messages", "target": "messages", "join": "\n"}


def test_a_label_that_is_named_is_the_label_or_one_line():
    rows = many(review=text, note=lambda n: mood(n) if n % 2 else None, stars=lambda n: n % 5)
    assert guessed(rows, label="note") == {"kind": "classification", "text": "review", "label": "note"}
    dotted = many(**{"a.text": text, "a.label": mood})
    keys = {"text": "a.text", "label": "a.label"}
    assert guessed(dotted, **keys) == {"kind": "classification", **keys}
    with pytest.raises(TaskError, match=r"'review' has 40 different texts in 40 rows\. Name another with --label\.$"):
        guessed(many(review=text, other=text), label="review")
    with pytest.raises(TaskError, match=r"beside the label 'review'; no other column has one\. Name it with --text\.$"):
        guessed(many(review=text, stars=lambda n: n % 5), label="review")


def test_one_of_several_columns_that_may_be_the_label_must_be_named():
    rows = many(review=text, verdict=mood, tone=lambda n: ("calm", "loud")[n % 2])
    with pytest.raises(TaskError, match=r"among the columns; verdict, tone may be it\. Name it with --label\.$"):
        guessed(rows)
    assert guessed(rows, label="tone") == {"kind": "classification", "text": "review", "label": "tone"}


@pytest.mark.parametrize(
    "right",
    [lambda n: n % 2, lambda n: n % 2 + 1, lambda n: "AB"[n % 2], lambda n: f"choice {n + n % 2}"],
    ids=["by place", "by place from 1", "by letter", "by text"],
)
@pytest.mark.parametrize("wished", [{}, {"label": "label"}], ids=["guessed", "named"])
def test_rows_with_choices_of_their_own_are_refused_by_name(right, wished):
    choices = lambda n: [f"choice {n}", f"choice {n + 1}"]  # noqa: E731
    rows = many(dialogue=lambda n: ["hello there", text(n)], question=text, choice=choices, label=right)
    with pytest.raises(
        TaskError, match=r"multiple choice is no kind of task here: 'label' says which text of 'choice'"
    ):
        guessed(rows, **wished)


def test_named_text_and_label_take_precedence_over_choices():
    rows = many(question=text, choice=lambda n: ["one", f"choice {n}"], label=lambda n: n % 2)
    named = {"text": "question", "label": "label"}
    assert guessed(rows, **named) == {"kind": "classification", **named}


def test_named_label_takes_precedence_over_choices():
    rows = many(question=text, choice=lambda n: ["one", f"choice {n}"], label=parity, topic=lambda n: "ab"[n % 2])
    assert guessed(rows, label="topic")["label"] == "topic"


def test_choices_with_labels_are_refused_too():
    choices = lambda n: {"text": [f"choice {n}", f"choice {n + 1}"], "label": ["A", "B"]}  # noqa: E731
    with pytest.raises(TaskError, match="'answerKey' says which text of 'choices'"):
        guessed(many(question=text, choices=choices, answerKey=lambda n: "AB"[n % 2]))


def test_a_kind_that_is_none_is_one_line():
    with pytest.raises(TaskError, match=r"the kind of a task must be one of classification, .*; got 'clustering'\.$"):
        guessed(SICK, "clustering")


@pytest.mark.parametrize(
    "rows",
    [many(a=lambda n: n, b=lambda n: n / 3), many(only=text), many(text=text, id=lambda n: n), many(x=None)],
    ids=["numbers", "one text", "a number of each row", "nothing"],
)
def test_columns_without_a_task_are_described_in_one_line(rows):
    with pytest.raises(TaskError, match=r"the columns are \w+: .* --source and --target\.$"):
        guessed(rows)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda n: n % 3, ColumnKind.LABEL),
        (lambda n: n % 2 == 0, ColumnKind.LABEL),
        (lambda n: n, ColumnKind.NUMBER),
        (lambda n: n / 2, ColumnKind.NUMBER),
        (lambda n: f"key-{n}", ColumnKind.TEXT),
        (lambda n: ["one", "two", "three"], ColumnKind.TEXTS),
        (chat, ColumnKind.CONVERSATION),
        (lambda n: {"begin": n}, ColumnKind.OTHER),
        (lambda n: [n], ColumnKind.OTHER),
        (lambda n: None, ColumnKind.EMPTY),
    ],
)
def test_kind_of_a_column_follows_from_its_values(value, kind):
    assert look_at(datasets.Dataset.from_list(many(x=value)))["x"].kind is kind


PAIRS_OF_TEXTS = many(translation=lambda n: {"en": text(n), "ro": f"ro {text(n)}"})
NESTED = many(data=lambda n: {"text": text(n), "label": mood(n)})


@pytest.mark.parametrize("kind", [None, "translation", "summarisation"])
def test_texts_by_language_are_suggested_by_their_paths(kind):
    message = r"the columns are translation\.en: text; translation\.ro: text\. The column translation holds en and ro: "
    with pytest.raises(TaskError, match=message + r"--source translation\.en --target translation\.ro\.$"):
        guessed(PAIRS_OF_TEXTS, kind)


@pytest.mark.parametrize(("source", "target"), [("en", "ro"), ("translation.en", "ro")])
def test_languages_are_named_by_themselves_or_by_path(source, target):
    keys = {"kind": "translation", "source": "translation.en", "target": "translation.ro"}
    assert guessed(PAIRS_OF_TEXTS, source=source, target=target) == keys
    named = guessed(PAIRS_OF_TEXTS, "summarisation", source=source, target=target)
    assert named == {**keys, "kind": "summarisation"}
    with pytest.raises(TaskError, match=r"no column 'de'; there are: translation\.en, translation\.ro\."):
        guessed(PAIRS_OF_TEXTS, source="en", target="de")


def test_fields_of_a_column_are_suggested_as_text_and_label():
    with pytest.raises(TaskError, match=r"holds text and label: --text data\.text --label data\.label\.$"):
        guessed(NESTED)
    keys = {"text": "data.text", "label": "data.label"}
    assert guessed(NESTED, **keys) == {"kind": "classification", **keys}
    deep = many(a=lambda n: {"b": {"said": text(n)}, "c": mood(n)})
    with pytest.raises(TaskError, match=r"the columns are a\.b\.said: text; a\.c: labels\."):
        guessed(deep)


@pytest.mark.parametrize(
    "names",
    [lambda n: f"word_{n % 4}", lambda n: "same", lambda n: f"word_{n % 5}" if n else None, lambda n: n % 5 + 10],
    ids=["several numbers of a name", "one name", "a row without", "numbers"],
)
def test_numbers_stay_labels_without_one_name_each(names):
    rows = many(text=text, label=lambda n: n % 5, label_text=names)
    assert guessed(rows)["label"] == "label"


def test_names_are_the_label_unless_the_numbers_are_named():
    rows = many(text=text, code=lambda n: n % 5 + 1, topic=lambda n: f"word_{n % 5}")
    assert guessed(rows)["label"] == "topic"
    assert guessed(rows, label="code")["label"] == "code"
    assert guessed(rows, "regression")["label"] == "code"


DREAM = many(
    dialogue=lambda n: ["hello there", text(n)],
    question=text,
    choice=lambda n: [f"choice {n}", f"choice {n + 1}"],
    answer=lambda n: f"choice {n}",
)


def test_kind_that_is_given_wins_over_the_guess():
    columns = {"context": "dialogue", "question": "question", "answers": "answer"}
    found = {"kind": "question_answering", "questions": columns, "join": "\n"}
    assert guessed(DREAM, "question_answering") == found
    assert guessed(PROMPTS, "translation")["kind"] == "translation"
    assert guessed(many(note=text, text=text), "instruction", text="note") == {"kind": "instruction", "text": "note"}


@pytest.mark.parametrize(
    ("kind", "wished", "message"),
    [
        ("summarisation", {"label": "answer"}, r"--kind summarisation takes --source, --target; got --label\."),
        ("classification", {"source": "question"}, r"--kind classification takes --text, --label; got --source\."),
        ("question_answering", {"text": "question"}, r"takes --context, --question, --answers; got --text\."),
        ("translation", {"question": "question"}, r"--kind translation takes --source, --target; got --question\."),
    ],
)
def test_columns_of_another_kind_are_refused(kind, wished, message):
    with pytest.raises(TaskError, match=message):
        guessed(DREAM, kind, **wished)


def test_questions_without_their_context_are_one_line():
    rows = many(question=text, answer=text)
    with pytest.raises(TaskError, match=r"of question, answer none is called context\. Name it with --context\.$"):
        guessed(rows, "question_answering")
