"""Generated texts and their measurement: decoding, metrics of the libraries, stand-ins at rungs."""

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import takewhile

import pytest
import torch
from support.packing_cases import request_for
from support.text_cases import (
    admitted,
    configurations,
    language_model,
    moved_pass,
    objective_of,
    plain_pass,
    text_runner,
    write_task,
)

from trial_runner.objectives.decoding import Writer
from trial_runner.requests import Reading, TrainingPlan
from trial_runner.runner import TorchRunner
from trial_runner.tasks import PROXY_LOSS, Decoding

NewRunner = Callable[..., TorchRunner]


def test_a_text_ends_at_the_end_of_text_and_holds_no_special_tokens(new_text_runner):
    runner = new_text_runner("bart")
    tokenizer, writer = runner.backbone.load_tokenizer(), Writer(runner.backbone, objective_of(runner).task)
    ids = tokenizer("ab c")["input_ids"]
    assert writer.text([*ids, *ids, runner.backbone.pad_token_id]) == "a ##b c"
    assert writer.text([tokenizer.eos_token_id, *ids]) == ""


@pytest.fixture
def write_tokens(new_text_runner: NewRunner, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Generate the tokens of a trial for validation, with the given weight of the end of text."""

    def write(family: str, decoding: Decoding, *, end: float = 0.0) -> list[list[str]]:
        runner = new_text_runner(family, decoding=decoding)
        last = objective_of(runner).task.eos_token_id

        def tokens_of(_: Writer, ids: Sequence[int]) -> str:
            return " ".join(str(each) for each in takewhile(lambda each: each != last, ids))

        monkeypatch.setattr(Writer, "text", tokens_of)
        layer = language_model(runner).get_output_embeddings()
        with torch.no_grad():
            layer.weight[last] = end * layer.weight.abs().sum(dim=0)
        pack, trials = admitted(runner)
        (texts,) = objective_of(runner).predictions(moved_pass(runner, pack)(trials), "validation")
        return [text.split() for text in texts]

    return write


@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_generation_obeys_the_decoding_of_the_task(write_tokens, family):
    texts = write_tokens(family, Decoding(max_new_tokens=9))
    assert max(len(text) for text in texts) == 9
    assert any(len(set(text)) < len(text) for text in texts)
    assert max(len(text) for text in write_tokens(family, Decoding(max_new_tokens=4))) == 4
    without = write_tokens(family, Decoding(max_new_tokens=9, no_repeat_ngram=1))
    assert all(len(set(text)) == len(text) for text in without)
    assert write_tokens(family, Decoding(max_new_tokens=9, beams=3)) != texts


def test_no_text_ends_before_its_least_length(write_tokens):
    short, long = (write_tokens("llama", Decoding(max_new_tokens=6, min_new_tokens=least), end=3.0) for least in (0, 5))
    assert min(len(text) for text in short) < 5
    assert min(len(text) for text in long) == 5


def test_a_length_penalty_favours_longer_texts(write_tokens):
    short, long = (
        write_tokens("llama", Decoding(max_new_tokens=9, beams=3, length_penalty=power), end=0.2)
        for power in (-3.0, 3.0)
    )
    assert sum(len(text) for text in short) < sum(len(text) for text in long)


def test_the_backbones_own_way_of_generating_is_forgotten(tmp_path, tiny_backbone):
    folder = tmp_path / "bart"
    shutil.copytree(tiny_backbone("bart"), folder)
    own = {"num_beams": 4, "forced_bos_token_id": 9, "no_repeat_ngram_size": 1, "max_length": 3, "length_penalty": -9.0}
    (folder / "generation_config.json").write_text(json.dumps(own))
    texts = []
    for place in (tiny_backbone("bart"), folder):
        runner = text_runner(place, write_task(tmp_path / "task"))
        pack, trials = admitted(runner)
        texts.append(objective_of(runner).predictions(plain_pass(runner, pack, trials), "test"))
        runner.close()
    assert texts[0] == texts[1]


def test_padding_is_never_written(new_text_runner):
    runner = new_text_runner("marian")
    model, pad = language_model(runner), runner.backbone.pad_token_id
    with torch.no_grad():
        model.final_logits_bias[0, pad] = 1e4
    pack, trials = admitted(runner)
    assert all(objective_of(runner).predictions(plain_pass(runner, pack, trials), "test")[0])


# ---- metrics


KINDS = {
    "translation": ("bleu", "chrf", "ter"),
    "data_to_text": ("bleu", "rouge2", "rougeLsum"),
    "summarisation": ("rouge1", "rougeL"),
}


def of_the_library(name: str, texts: list[str], references: list[list[str]]) -> float:
    """Compute a metric with its library."""
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer

    if name.startswith("rouge"):
        scorer = RougeScorer([name], use_stemmer=True)
        found = [scorer.score_multi(each, text)[name].fmeasure for each, text in zip(references, texts, strict=True)]
        return sum(found) / len(found)
    streams = [list(stream) for stream in zip(*references, strict=True)]
    corpus = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf, "ter": sacrebleu.corpus_ter}[name]
    return float(corpus(texts, streams).score)


@pytest.mark.parametrize("family", ["bart", "gpt2"])
@pytest.mark.parametrize("kind", KINDS)
def test_metric_equals_that_of_its_library(new_text_runner, family, kind):
    names = KINDS[kind]
    runner = new_text_runner(family, kind=kind, metric=names[0], metrics=names, group="group")
    pack, trials = admitted(runner, ("lora_qv", "prefix_tuning", "mam_adapter"))
    together, objective = moved_pass(runner, pack)(trials), objective_of(runner)
    split = objective.task.splits["validation"]
    written = objective.predictions(together, "validation")
    half = [  # of random weights nothing is ever right
        [each[0] if row % 3 else text for row, (text, each) in enumerate(zip(texts, split.references, strict=True))]
        for texts in written
    ]
    objective.generated = lambda *_: half  # type: ignore[method-assign]
    measured = [found.metrics for found in objective.measure(together, "validation", is_final=True)]
    for texts, found in zip(half, measured, strict=True):
        for group in ("", "seen", "unseen"):
            rows = [row for row in range(len(split)) if group in ("", split.groups[row])]
            some = [texts[row] for row in rows], [list(split.references[row]) for row in rows]
            for name in names:
                key = f"{name}_{group}" if group else name
                assert found[key] == pytest.approx(of_the_library(name, *some), rel=1e-12), key
                assert found[key] > 0
    assert objective.score(measured[0]) == measured[0][names[0]]


def test_final_reading_is_measured_on_final_texts(new_text_runner):
    runner = new_text_runner("t5_gated", metric="chrf", metrics=("chrf", "bleu"))
    pack, trials = admitted(runner, ("lora_qv", "prefix_tuning"), steps=4)
    readings = [each for each in pack.advance(4) if isinstance(each, Reading) and each.step == 4]
    split = objective_of(runner).task.splits["validation"]
    for trial, reading in zip(trials, readings, strict=True):
        (texts,) = objective_of(runner).predictions(plain_pass(runner, pack, [trial]), "validation")
        expected = of_the_library("chrf", texts, [list(each) for each in split.references])
        assert reading.score == reading.metrics["chrf"] == pytest.approx(expected, rel=1e-12)


# ---- rungs


def test_early_readings_have_the_loss_and_generate_no_text(new_text_runner, monkeypatch):
    runner = new_text_runner("bart")
    calls: list[int] = []
    write = Writer.write
    monkeypatch.setattr(Writer, "write", lambda self, *given, **more: calls.append(1) or write(self, *given, **more))
    pack, _ = admitted(runner, ("lora_qv", "prefix_tuning"), steps=4)
    early = [each for each in pack.advance(2) if isinstance(each, Reading)]
    assert not calls
    assert len(early) == 2
    for reading in early:
        assert reading.score == -reading.metrics["validation_loss"] == -reading.metrics[PROXY_LOSS]
        assert "bleu" not in reading.metrics
    final = [each for each in pack.advance(2) if isinstance(each, Reading)]
    assert calls
    assert all(each.score == each.metrics["bleu"] and PROXY_LOSS not in each.metrics for each in final)


def test_a_metric_of_the_loss_needs_no_stand_in(new_text_runner, monkeypatch):
    monkeypatch.setattr(Writer, "write", None)
    runner = new_text_runner("gpt2", metric="perplexity", metrics=("perplexity",))
    pack, _ = admitted(runner, steps=4)
    readings = [each for each in pack.advance(4) if isinstance(each, Reading)]
    assert all(each.score == -each.metrics["perplexity"] for each in readings)
    assert all(PROXY_LOSS not in each.metrics for each in readings)


def test_slots_at_a_rung_and_at_their_end_are_measured_each_in_its_way(new_text_runner):
    runner = new_text_runner("bart")
    short, long = configurations(runner, ("lora_qv", "ia3"))
    pack = runner.open_pack(2)
    pack.admit(request_for(short, 0, steps=2))
    pack.admit(request_for(long, 1, steps=4))
    readings = {(each.trial, each.step): each for each in pack.advance(2) if isinstance(each, Reading)}
    assert "bleu" in readings[0, 2].metrics
    assert PROXY_LOSS in readings[1, 2].metrics
    assert "bleu" not in readings[1, 2].metrics


def test_confirmations_are_measured_on_the_test_split(new_text_runner):
    runner = new_text_runner("bart", metrics=("bleu", "loss"))
    plan = TrainingPlan(steps=1, batch_size=2, evaluate_at_steps=(1,), measured_split="test")
    pack = runner.open_pack(1)
    pack.admit(request_for(configurations(runner, ("lora_qv",))[0], 0, steps=2, plan=plan))
    (reading,) = pack.advance(1)
    together = plain_pass(runner, pack, [0])
    assert isinstance(reading, Reading)
    assert reading.metrics == objective_of(runner).measure(together, "test", is_final=True)[0].metrics
