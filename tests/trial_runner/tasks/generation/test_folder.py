import copy

import numpy as np
import pytest

from search_space.dimensions import StackKind
from trial_runner.backbones import load_tokenizer, tokenizer_id
from trial_runner.errors import TaskError
from trial_runner.tasks import IGNORED, TASK_KINDS, Decoding, Task


@pytest.fixture
def prepared(tiny_backbone, tokenised):
    """Prepare a text task for a tiny backbone; ``given`` has further arguments of `prepare_task`."""

    def run(folder, family="bart", task_kind="translation", given=None, **options):
        columns = options.pop("columns", {"source": "en", "target": "de"})
        metric = TASK_KINDS[task_kind].usual_metric
        usual = {"decoding": Decoding(max_new_tokens=20), "metric": metric, "max_tokens": 128}
        task = Task(**{"folder": str(folder), "kind": task_kind} | columns | usual | options)
        return tokenised(task, tiny_backbone(family), **(given or {}))

    return run


@pytest.fixture
def tokens(tiny_backbone):
    """Return the tokens of ids, special ones among them."""

    def run(ids, family="bart"):
        return load_tokenizer(str(tiny_backbone(family))).convert_ids_to_tokens(list(ids))

    return run


def pairs(prefix, count=3):
    return [{"en": f"{prefix} {n}", "de": f"{prefix}e {n * 11}"} for n in range(count)]


@pytest.fixture
def folder(write_splits):
    """Three splits of three pairs."""
    return write_splits(pairs)


def texts(task, split, family, tokens, side="sources"):
    rows = getattr(task.splits[split], side)
    held = [rows.ids[begin:end] for begin, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    return [" ".join(tokens(ids, family)) for ids in held]


def test_decoder_input_is_the_shifted_target(folder, prepared, tokens):
    task = prepared(folder)
    batch = task.splits["test"].batch([0, 2], 1, start_token_id=2)
    assert tokens(batch.input_ids[0]) == ["<s>", "t", "##e", "##s", "##t", "0", "</s>"]
    assert tokens(batch.labels[1]) == ["<s>", "t", "##e", "##s", "##t", "##e", "2", "##2", "</s>"]
    assert tokens(batch.labels[0][:8]) == ["<s>", "t", "##e", "##s", "##t", "##e", "0", "</s>"]
    assert batch.labels[0][8] == IGNORED
    assert tokens(batch.decoder_input_ids[0]) == ["</s>", "<s>", "t", "##e", "##s", "##t", "##e", "0", "</s>"]
    assert batch.decoder_input_ids.shape == batch.labels.shape == (2, 9)
    assert batch.attention_mask.all()
    assert (task.start_token_id, task.stack, task.labels) == (None, StackKind.ENCODER_DECODER, ())
    assert task.eos_token_id == 2


def test_a_decoder_learns_the_target_behind_the_source_and_the_separator(folder, prepared, tokens):
    task = prepared(folder, "gpt2")
    batch = task.splits["test"].batch([2, 0], 7)
    row = ["t", "##e", "##s", "##t", "2", "<|endoftext|>", "t", "##e", "##s", "##t", "##e", "2", "##2", "<|endoftext|>"]
    assert tokens(batch.input_ids[0], "gpt2") == row
    assert batch.decoder_input_ids is None
    learned = batch.labels[0] != IGNORED
    # the place before a token has it as its label: the separator says the first one, nothing follows the last
    assert np.flatnonzero(learned).tolist() == list(range(5, 13))
    assert batch.labels[0][learned].tolist() == batch.input_ids[0][6:].tolist()
    assert batch.input_ids[1][-1] == 7
    assert batch.attention_mask[1].tolist() == [True] * 13 + [False]
    assert (batch.labels[1] != IGNORED).sum() == 7
    assert task.splits["test"].lengths[[2, 0]].tolist() == batch.attention_mask.sum(1).tolist()


def test_decoder_prompts_are_padded_left_and_others_right(write_splits, prepared):
    folder = write_splits(lambda split: [{"en": split[1], "de": "x"}, {"en": split[1] * 3, "de": "y"}])
    ids, mask = prepared(folder, "gpt2").splits["test"].prompts([0, 1], 9)
    assert mask.tolist() == [[False, False, True, True], [True] * 4]
    assert ids[0][:2].tolist() == [9, 9]
    assert (ids[:, -1] == 0).all()  # the separator comes last in both
    _, mask = prepared(folder, "bart").splits["test"].prompts([0, 1], 9, multiple_of=8)
    assert mask.tolist() == [[True] * 3 + [False] * 5, [True] * 5 + [False] * 3]


def test_decoder_loss_equals_transformers_with_masked_prompt(folder, prepared, tiny_language_model):
    torch = pytest.importorskip("torch")
    batch = prepared(folder, "gpt2").splits["train"].batch([0, 1, 2], 0)
    model = tiny_language_model("gpt2").double()
    ids, mask = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.attention_mask)
    unshifted = np.roll(batch.labels, 1, axis=1)
    unshifted[:, 0] = IGNORED
    output = model(input_ids=ids, attention_mask=mask, labels=torch.from_numpy(unshifted))
    flat = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), torch.from_numpy(batch.labels).flatten())
    torch.testing.assert_close(flat, output.loss.double(), rtol=1e-6, atol=0)  # theirs is in float32


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_decoder_input_equals_transformers_shift(folder, prepared, tiny_language_model, family):
    torch = pytest.importorskip("torch")
    model = tiny_language_model(family).double()
    config = model.config
    train, start = prepared(folder, family).splits["train"], config.decoder_start_token_id
    batch = train.batch([0, 1, 2], config.pad_token_id, start_token_id=start)
    inputs = {"input_ids": torch.from_numpy(batch.input_ids), "attention_mask": torch.from_numpy(batch.attention_mask)}
    labels = torch.from_numpy(batch.labels)
    ours = model(**inputs, decoder_input_ids=torch.from_numpy(batch.decoder_input_ids)).logits
    loss = torch.nn.functional.cross_entropy(ours.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(loss, model(**inputs, labels=labels).loss)


def test_a_decoder_with_a_beginning_of_text_separates_with_it(folder, prepared, tiny_backbone, tokens):
    tokenizer = copy.deepcopy(load_tokenizer(str(tiny_backbone("llama"))))
    tokenizer.bos_token = "a"
    given = {"tokenizer": tokenizer, "name": "with bos"}
    task = prepared(folder, "llama", given=given)
    assert texts(task, "test", "llama", tokens)[0] == "t ##e ##s ##t 0 a"
    tokenizer.bos_token = "b"
    again = prepared(folder, "llama", given=given)
    assert texts(again, "test", "llama", tokens)[0] == "t ##e ##s ##t 0 b"
    assert texts(task, "test", "llama", tokens, "targets")[0] == "t ##e ##s ##t ##e 0 <|endoftext|>"


def test_a_target_of_a_decoder_begins_no_text_of_its_own(folder, prepared, tiny_backbone, tokens):
    from tokenizers.processors import TemplateProcessing

    begun = copy.deepcopy(load_tokenizer(str(tiny_backbone("gpt2"))))
    begun.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", begun.eos_token_id)]
    )
    task = prepared(folder, "gpt2", given={"tokenizer": begun})
    assert texts(task, "test", "gpt2", tokens)[0] == "<|endoftext|> t ##e ##s ##t 0 <|endoftext|>"
    assert texts(task, "test", "gpt2", tokens, "targets")[0] == "t ##e ##s ##t ##e 0 <|endoftext|>"


def test_long_text_is_cut_with_its_end_kept_and_noted(write_splits, prepared, tokens):
    folder = write_splits(lambda s: [{"en": s[1] * 30, "de": "y" * 30}, {"en": f"{s[1]}x", "de": "z"}])
    for family, end in (("bart", "</s>"), ("gpt2", "<|endoftext|>")):
        task = prepared(folder, family, max_tokens=9, max_target_tokens=6)
        rows = texts(task, "test", family, tokens)
        assert len(rows[0].split()) == 9
        assert rows[0].endswith(end)
        target = texts(task, "test", family, tokens, "targets")[0]
        assert len(target.split()) == 6
        assert target.endswith(end)
        assert task.notes[:2] == (
            "train: 1 of 2 sources is cut to 9 tokens. Raise task.max_tokens.",
            "train: 1 of 2 targets is cut to 6 tokens. Raise task.max_target_tokens.",
        )


def test_an_encoder_cannot_write(folder, prepared):
    with pytest.raises(TaskError, match=r"a translation task needs a backbone that generates: .* got an encoder"):
        prepared(folder, "roberta")


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("bart", {"max_tokens": 65}, "max_tokens must be at most 64, the positions of the backbone; got 65"),
        ("bart", {"max_tokens": 9, "max_target_tokens": 65}, "max_target_tokens must be at most 64"),
        (
            "bart",
            {"max_tokens": 9, "max_target_tokens": 9, "decoding": Decoding(max_new_tokens=99)},
            "max_new_tokens must be at most 64, the positions of the backbone; got 99",
        ),
        (
            "gpt2",
            {"max_tokens": 50, "max_target_tokens": 10, "decoding": Decoding(max_new_tokens=15)},
            "max_tokens and max_new_tokens together must be at most 64, the positions of the backbone; got 65",
        ),
        ("gpt2", {"max_tokens": 50, "max_target_tokens": 15}, "max_tokens and max_target_tokens together .* got 65"),
    ],
)
def test_lengths_beyond_the_positions_of_the_backbone_are_one_clear_line(folder, prepared, family, options, message):
    with pytest.raises(TaskError, match=message):
        prepared(folder, family, given={"position_limit_tokens": 64}, **options)


def test_an_instruction_goes_before_every_source(folder, prepared, tokens):
    task = prepared(folder, "t5", instruction="go:")
    assert texts(task, "test", "t5", tokens)[0] == "g ##o : t ##e ##s ##t 0 </s>"


TRIPLES = {"source": "triples", "target": "texts"}


def test_every_reference_is_learned_and_all_of_them_are_measured_against(write_splits, prepared, tokens):
    several, one = {"texts": ["one", "two", "one"]}, {"texts": "three"}
    folder = write_splits(lambda s: [{"triples": [f"{s} | is | a_b"], **several}, {"triples": f"{s} only", **one}])
    task = prepared(folder, "gpt2", task_kind="data_to_text", columns=TRIPLES)
    assert texts(task, "train", "gpt2", tokens, "targets") == [
        f"{word} <|endoftext|>" for word in ("o ##n ##e", "t ##w ##o", "t ##h ##r ##e ##e")
    ]
    assert texts(task, "test", "gpt2", tokens)[0] == "| t ##e ##s ##t : i ##s : a b <|endoftext|>"
    assert task.splits["test"].references == (("one", "two"), ("three",))
    assert task.splits["train"].references == ()
    assert task.notes == ("train: 2 rows have 3 references; each is learned",)


def test_data_to_text_rows_of_one_source_are_references(write_splits, prepared):
    pairs = ("{}", "one"), ("{} x", "two"), ("{}", "three")
    folder = write_splits(lambda split: [{"en": source.format(split), "de": target} for source, target in pairs])
    task = prepared(folder, task_kind="data_to_text")
    assert task.splits["test"].references == (("one", "three"), ("two",))
    assert len(task.splits["train"]) == 3
    assert "test: 3 rows have 2 sources; those of a source are its references" in task.notes
    assert prepared(folder).splits["test"].references == (("one",), ("two",), ("three",))


def test_train_may_have_targets_and_the_others_references(write_rows, prepared, tokens):
    write_rows("train.jsonl", [{"mr": "a", "human": "x"}])
    write_rows("validation.jsonl", [{"mr": "b", "refs": ["y", "z"]}])
    folder = write_rows("test.jsonl", [{"mr": "c", "refs": ["y"], "human": "w"}])
    columns = {"source": "mr", "target": "human", "references": "refs"}
    task = prepared(folder, task_kind="data_to_text", columns=columns)
    assert (task.splits["validation"].references, task.splits["test"].references) == ((("y", "z"),), (("y",),))
    targets = [texts(task, split, "bart", tokens, "targets") for split in ("train", "validation", "test")]
    assert targets == [["<s> x </s>"], ["<s> y </s>"], ["<s> w </s>"]]
    with pytest.raises(
        TaskError, match=r"'validation' must have a column 'ref'; it has: mr, refs\. Did you mean 'refs'"
    ):
        prepared(folder, task_kind="data_to_text", columns={"source": "mr", "target": "human", "references": "ref"})


def test_questions_are_read_with_their_context_and_any_answer_counts(write_splits, prepared, tokens):
    who = {"question": "who?", "answers": {"text": ["ab", "c", "ab"], "answer_start": [0, 1, 0]}}
    why = {"question": "why?", "answers": {"text": ["d"], "answer_start": [0]}}
    folder = write_splits(lambda split: [{"context": split, **question} for question in (who, why)])
    task = prepared(folder, task_kind="question_answering", columns={})
    source = "q ##u ##e ##s ##t ##i ##o ##n : w ##h ##o ? c ##o ##n ##t ##e ##x ##t : t ##e ##s ##t"
    assert texts(task, "test", "bart", tokens)[0] == f"<s> {source} </s>"
    assert task.splits["test"].references == (("ab", "c"), ("d",))
    assert texts(task, "train", "bart", tokens, "targets") == ["<s> a ##b </s>", "<s> d </s>"]  # the first is learned


def test_a_conversation_is_a_question_per_turn_that_remembers_two(write_splits, prepared, tokens):
    answers = {"input_text": ["1", "2", "3", "4"], "answer_start": [0, 0, 0, 0]}
    folder = write_splits(lambda split: [{"story": f"{split} s", "questions": [*"abcd"], "answers": answers}])
    columns = {"questions": {"context": "story", "question": "questions"}}
    task = prepared(folder, "t5", task_kind="question_answering", columns=columns, max_tokens=60)
    prompts = [text.split(" : ")[1] for text in texts(task, "test", "t5", tokens)]
    assert prompts == [f"{prompt} c ##o ##n ##t ##e ##x ##t" for prompt in ("a", "a 1 b", "a 1 b 2 c", "b 2 c 3 d")]
    assert task.splits["test"].references == (("1",), ("2",), ("3",), ("4",))


def test_groups_of_examples_are_kept(write_splits, prepared):
    folder = write_splits(lambda split: [{**row, "seen": n != 1} for n, row in enumerate(pairs(split))])
    task = prepared(folder, group={"column": "seen", "values": {"seen": ("true",), "unseen": ("false",)}})
    assert task.splits["test"].groups == ("seen", "unseen", "seen")
    with pytest.raises(TaskError, match=r"must have a column 'sene'; it has: en, de, seen\. Did you mean 'seen'"):
        prepared(folder, group="sene")


def test_a_test_split_of_several_files_has_a_group_for_each(write_rows, prepared):
    write_rows("train.jsonl", pairs("train", 200))
    write_rows("near.jsonl", pairs("near", 2))
    folder = write_rows("far.jsonl", pairs("far", 1))
    task = prepared(folder, splits={"test": {"near": "near", "far": "far"}})
    assert task.splits["test"].groups == ("near", "near", "far")
    assert set(task.splits["validation"].groups) == {""}


def test_a_development_set_used_as_test_is_not_validation_too(write_rows, prepared):
    write_rows("train.jsonl", pairs("train", 200))
    folder = write_rows("validation.jsonl", pairs("dev", 4))
    task = prepared(folder, splits={"test": "validation"})
    assert len(task.splits["test"]) == 4
    assert len(task.splits["train"]) + len(task.splits["validation"]) == 200
    assert task.notes[0].startswith("validation: carved from train")


def test_questions_about_one_context_are_carved_into_one_split(write_rows, prepared, tokens):
    rows = [{"context": f"c{n}", "question": f"{turn}?", "answers": ["a"]} for n in range(80) for turn in "xyz"]
    task = prepared(write_rows("train.jsonl", rows), "t5", task_kind="question_answering", columns={})
    contexts = {split: [text.split(" : ")[2] for text in texts(task, split, "t5", tokens)] for split in task.splits}
    assert all(len(held) == 3 * len(set(held)) > 0 for held in contexts.values())
    assert sum(len(set(held)) for held in contexts.values()) == 80


def test_leaked_source_is_dropped_from_train_with_a_note(write_rows, prepared, tokens):
    write_rows("train.jsonl", [*pairs("train"), {"en": " VALIDATION  1", "de": "q"}, {"en": "test 0", "de": "r"}])
    write_rows("validation.jsonl", [*pairs("validation"), {"en": "Test 2", "de": "s"}])
    folder = write_rows("test.jsonl", pairs("test"))
    task = prepared(folder)
    assert texts(task, "train", "bart", tokens) == [f"<s> t ##r ##a ##i ##n {n} </s>" for n in range(3)]
    assert (len(task.splits["validation"]), len(task.splits["test"])) == (4, 3)
    assert task.notes == (
        "train: 2 of 5 rows are dropped: text also in validation or test.",
        "test: 1 texts are in validation too",
    )


def test_train_that_is_wholly_repeated_is_one_clear_line(write_splits, prepared):
    folder = write_splits(lambda split: pairs("same"))
    with pytest.raises(TaskError, match="a text that is in no other split; each of its 3 is in validation or test too"):
        prepared(folder)


GOOD = {"en": "fine", "de": "gut"}
BAD_ROWS = {
    "a missing source column": ([{"e": "a", "de": "b"}], "must have a column 'en'; it has: e, de"),
    "a missing target column": ([{"en": "a", "ed": "b"}], r"must have a column 'de'; it has: en, ed"),
    "blank sources": ([{"en": " ", "de": "b"}], "each row of train must have a text and a target; row 1 has not"),
    "no targets": ([{"en": "a", "de": None}, {"en": "b", "de": ""}], "must have a text and a target; row 1 has not"),
    "no rows": ([], "must hold at least one example"),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows_are_one_clear_line(folder, write_rows, prepared, bad):
    rows, message = BAD_ROWS[bad]
    write_rows("train.jsonl", rows)
    with pytest.raises(TaskError, match=message) as caught:
        prepared(folder)
    assert "\n" not in str(caught.value)


def test_a_conversation_with_too_few_answers_is_one_clear_line(write_splits, prepared):
    folder = write_splits(lambda split: [{"context": split, "question": ["a", "b"], "answers": ["x"]}])
    with pytest.raises(TaskError, match="an answer for each of its 2 questions; got 1 in column 'answers' of split"):
        prepared(folder, task_kind="question_answering", columns={})


def test_a_test_split_without_references_is_replaced(write_rows, prepared):
    write_rows("train.jsonl", pairs("train", 200))
    write_rows("validation.jsonl", pairs("validation"))
    folder = write_rows("test.jsonl", [{"en": "a", "de": None}, {"en": "b", "de": None}])
    task = prepared(folder)
    assert task.notes[0] == "test: 2 of 2 rows are dropped: no reference."
    assert task.notes[1].startswith("test: carved from train")


def test_fingerprint_depends_on_token_settings_only(folder, prepared):
    first = prepared(folder, group="en")
    options = {"metric": "chrf", "label_smoothing": 0.1, "decoding": Decoding(max_new_tokens=5, beams=2)}
    second = prepared(folder, group="en", **options)
    assert (second.metric, second.label_smoothing, second.decoding.beams) == ("chrf", 0.1, 2)
    assert second.fingerprint == first.fingerprint
    others = [
        prepared(folder, "gpt2", group="en"),
        prepared(folder, group="en", max_target_tokens=9),
        prepared(folder, group="en", instruction="go:"),
        prepared(folder, group="de"),
    ]
    assert len({first.fingerprint, *(task.fingerprint for task in others)}) == 5


def mbart_tokenizer():
    from transformers import MBartTokenizer
    from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES

    words = ["▁t", "e", "s", "t", "▁", "0", "1", "2"]
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocab = [(word, 0.0) for word in (*special, *words, *FAIRSEQ_LANGUAGE_CODES, "<mask>")]
    return MBartTokenizer(vocab=vocab)


def test_mbart_language_codes_leave_the_tokenizer_unchanged(folder, prepared):
    tokenizer = mbart_tokenizer()
    before = tokenizer_id(tokenizer)
    task = prepared(folder, given={"tokenizer": tokenizer}, languages=("de_DE", "ro_RO"))
    romanian = tokenizer.convert_tokens_to_ids("ro_RO")
    batch = task.splits["test"].batch([0], 1, start_token_id=task.start_token_id)
    assert tokenizer.convert_ids_to_tokens(batch.input_ids[0])[-2:] == ["</s>", "de_DE"]
    assert tokenizer.convert_ids_to_tokens(batch.labels[0])[-2:] == ["</s>", "ro_RO"]
    assert task.start_token_id == batch.decoder_input_ids[0][0] == romanian
    assert tokenizer_id(tokenizer) == before
    with pytest.raises(TaskError, match="languages must be known to the tokenizer; got 'romanian'"):
        prepared(folder, given={"tokenizer": tokenizer}, languages=("de_DE", "romanian"))
