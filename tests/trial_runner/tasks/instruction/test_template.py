"""Dialogues in tokens, against the output of the template."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.chat_cases import CHATML, ENDLESS, TAGGED, THINKING, chat_backbone

from search_space.dimensions import StackKind
from trial_runner import chat_templates
from trial_runner.backbones import load_tokenizer
from trial_runner.errors import TaskError
from trial_runner.tasks import IGNORED, Task
from trial_runner.tasks.instruction.chats import RawChats, as_question, with_system
from trial_runner.tasks.instruction.template import ChatEncoder
from trial_runner.tasks.task import Dialogue

TASK = Task(kind="instruction", folder="x", metric="rougeL", max_tokens=400)


def say(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


ONE = (say("user", "hi there"), say("assistant", "hello"))
TWO = (say("system", "be kind"), *ONE, say("user", "and 7?"), say("assistant", "no, 3"))


NewEncoder = Callable[..., ChatEncoder]


@pytest.fixture
def encoder(tiny_backbone: Callable[..., Path], tmp_path: Path) -> NewEncoder:
    def make(template: str = CHATML, task: Task = TASK) -> ChatEncoder:
        folder = chat_backbone(tiny_backbone("qwen3"), tmp_path / f"b{len(list(tmp_path.iterdir()))}", template)
        return ChatEncoder(task, load_tokenizer(str(folder)), StackKind.DECODER)

    return make


def raw(*chats: Any, references: tuple[tuple[str, ...], ...] | None = None) -> RawChats:
    return RawChats(chats=chats, references=references or ((),) * len(chats), groups=("",) * len(chats))


def ids_of(encoder: ChatEncoder, text: str) -> list[int]:
    ids: list[int] = encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


SYSTEM = "<|im_start|>system\nbe kind<|im_end|>\n"
FIRST = "<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\n"
SECOND = "<|im_start|>user\nand 7?<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("template", [CHATML, TAGGED], ids=["by difference", "by its tags"])
@pytest.mark.parametrize("turns", ["all", "last"])
def test_tokens_are_those_of_the_template_and_answers_alone_are_learned(
    template: str, turns: Any, encoder: NewEncoder
) -> None:
    dialogues = encoder(template, replace(TASK, dialogue=Dialogue(learned_turns=turns)))
    split, cuts, unused = dialogues.encode(raw(TWO), "validation")
    written = dialogues.tokenizer.apply_chat_template([dict(each) for each in TWO], return_dict=False)
    parts = [(SYSTEM + FIRST, False), ("hello<|im_end|>", turns == "all"), ("\n" + SECOND, False)]
    expected = [(token, learned) for text, learned in parts for token in ids_of(dialogues, text)]
    expected += [(token, True) for token in ids_of(dialogues, "no, 3<|im_end|>")]
    expected += [(token, False) for token in ids_of(dialogues, "\n")]
    assert split.rows.ids.tolist() == written == [token for token, _ in expected]
    assert split.learned.tolist() == [learned for _, learned in expected]
    assert split.sources.ids.tolist() == ids_of(dialogues, f"{SYSTEM}{FIRST}hello<|im_end|>\n{SECOND}")
    assert (split.references, cuts, unused) == ((("no, 3",),), [], 0)
    assert dialogues.eos_token_id == ids_of(dialogues, "<|im_end|>")[0]


def test_labels_are_the_learned_tokens_one_place_earlier(encoder: NewEncoder) -> None:
    split, _, _ = encoder().encode(raw(ONE, TWO), "train")
    batch = split.batch([1, 0], pad_token_id=1)
    for row, which in enumerate((1, 0)):
        start, end = split.rows.offsets[which], split.rows.offsets[which + 1]
        ids, learned = split.rows.ids[start:end], split.learned[start:end]
        labels = np.full(batch.labels.shape[1], IGNORED)
        labels[np.flatnonzero(learned) - 1] = ids[learned]
        assert batch.labels[row].tolist() == labels.tolist()
        assert batch.input_ids[row][batch.attention_mask[row]].tolist() == ids.tolist()
    assert split.references == ((), ())


def test_template_that_rewrites_messages_is_refused(
    encoder: NewEncoder,
) -> None:
    with pytest.raises(
        TaskError, match=r"must not rewrite .* in the dialogue '.+' of train\. Learn the last answer alone with"
    ):
        encoder(THINKING).encode(raw(TWO), "train")
    silent = Dialogue(learned_turns="last", template_options={"enable_thinking": False})
    last = encoder(THINKING, replace(TASK, dialogue=silent))
    split, _, _ = last.encode(raw(TWO), "validation")
    thoughts = "<think>\n\n</think>\n\n"
    assert split.sources.ids.tolist() == ids_of(last, f"{SYSTEM}{FIRST}hello<|im_end|>\n{SECOND}{thoughts}")
    assert split.rows.ids[split.learned].tolist() == ids_of(last, "no, 3<|im_end|>")
    thinking = encoder(THINKING, replace(TASK, dialogue=Dialogue(learned_turns="last")))
    split, _, _ = thinking.encode(raw(ONE), "validation")
    assert split.rows.ids[split.learned].tolist() == ids_of(thinking, f"{thoughts}hello<|im_end|>")


def test_system_prompt_precedes_dialogues_without_one(encoder: NewEncoder) -> None:
    task = replace(TASK, dialogue=Dialogue(system="be kind"))
    dialogues = encoder(task=task)
    assert with_system(ONE, task) == TWO[:3]
    assert with_system(TWO, task) == TWO
    questions = [as_question("hi there"), as_question(list(ONE)), as_question(list(TWO[:4]))]
    rows, cut = dialogues.sources([text for text in questions if text is not None])
    both = ids_of(dialogues, SYSTEM + FIRST)
    assert rows.ids.tolist() == both * 2 + ids_of(dialogues, f"{SYSTEM}{FIRST}hello<|im_end|>\n{SECOND}")
    assert cut == 0


def test_long_dialogues_end_with_the_last_answer_that_begins_early_enough(encoder: NewEncoder) -> None:
    whole = encoder()
    first = len(ids_of(whole, SYSTEM + FIRST))
    dialogues = encoder(task=replace(TASK, max_tokens=first + 2))
    split, (cut,), unused = dialogues.encode(raw(TWO), "test")
    assert split.rows.ids.tolist() == ids_of(whole, f"{SYSTEM}{FIRST}hello")[: first + 2]
    assert split.learned.tolist() == [False] * first + [True, True]
    assert (split.references, cut.count, unused) == ((("hello",),), 1, 0)
    measured, cuts, unused = dialogues.encode(raw(TWO, ONE, references=(("9",), ("8",))), "test")
    assert (measured.references, cuts, unused) == ((("8",),), [], 1), "what is measured belongs to the last answer"
    assert encoder(task=replace(TASK, max_tokens=8)).encode(raw(TWO), "test")[2] == 1


def test_of_a_plain_text_every_token_is_learned_but_the_first(encoder: NewEncoder) -> None:
    dialogues = encoder(task=replace(TASK, text=("body",), metric="loss"))
    split, _, _ = dialogues.encode(raw((say("text", "a plain text"),)), "train")
    ids = [*ids_of(dialogues, "a plain text"), dialogues.tokenizer.eos_token_id]
    assert split.rows.ids.tolist() == ids
    assert split.batch([0], 0).labels[0].tolist() == [*ids[1:], IGNORED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "match"),
    [
        ("", "needs a tokenizer with a chat template; got one without"),
        (ENDLESS, "must end an answer with a special token"),
        ("{{ raise_exception('roles must alternate') }}", "of user, assistant it says: .*roles must alternate"),
        ("{{ 1 // 0 }}", "division"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{ 'x' * 4000000000 }}", "at most 1 s and 512 MB; it takes more. Mend them or the template, or choose"),
        ("{{ 'x'.ljust(200000) }}", "must write at most 10[0-9],[0-9]{3} characters; it writes 200,000"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "at most 1 s and 512 MB"),
        ("{{ '%4000000000d' % 1 }}", "at most 1 s and 512 MB; it takes more. Mend them or the template, or choose"),
    ],
    ids=["none", "no end", "a refusal", "zero", "recursion", "bytes", "characters", "time", "a format"],
)
def test_templates_that_cannot_be_learned_are_refused_in_a_line(
    template: str, match: str, encoder: NewEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_templates, "RENDER_SECONDS", 1.0)
    with pytest.raises(TaskError, match=match) as refused:
        encoder(template)
    assert "\n" not in str(refused.value)
    assert encoder().text(ONE[:1], asks=True) == FIRST


@pytest.mark.parametrize("text", ["x", "\x1b[31m", "\u202e", "a\n"], ids=["letters", "escapes", "overrides", "lines"])
def test_template_error_is_bounded_and_escaped(text: str, encoder: NewEncoder) -> None:
    template = "{% if messages[0]['role'] == 'user' %}" + CHATML + "{% else %}{{ raise_exception('SAID' * 400000) }}"
    dialogues = encoder(template.replace("SAID", text) + "{% endif %}")
    chat = tuple(say(f"role {text} {number}", "hello") for number in range(500))
    with pytest.raises(TaskError, match="chat template") as refused:
        dialogues.text(chat)
    assert len(str(refused.value)) < 500
    assert str(refused.value).isprintable()


def test_only_decoders_are_talked_with(tiny_backbone: Callable[..., Path]) -> None:
    tokenizer = load_tokenizer(str(tiny_backbone("bart")))
    with pytest.raises(TaskError, match="needs a decoder; got an encoder"):
        ChatEncoder(TASK, tokenizer, StackKind.ENCODER_DECODER)
