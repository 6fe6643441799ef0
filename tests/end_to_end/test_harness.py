"""Confirmations that lm-eval measures: its figures are those that it has of the exported model by itself."""

import json
import string
from pathlib import Path
from typing import Any

import pytest
import torch
from support import rotation
from support.chat_studies import chat_study

from deltaspace import open_study
from deltaspace.commands.main import main
from trial_runner.backbones import load_language_model
from trial_runner.export import predictors

_FIGURE = "  - metric: {}\n    aggregation: {}\n    higher_is_better: {}\n"
_TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{target}"
{more}metric_list:
{metrics}"""
QUESTIONS = [("7+8", "15"), ("a longer question: 12+30", "42"), ("2+2", "4"), ("5+31, please", "36"), ("count", "one")]


def harness_tasks(folder: Path) -> dict[str, Path]:
    """A task of each kind: by the likelihood of one answer, of several, of a whole text, and by writing."""
    file = folder / "questions.json"
    written = " ".join(string.punctuation.replace("{", "") + string.digits + string.ascii_lowercase)
    rows = [
        {"question": question, "answer": answer, "choices": [answer, "nine"], "written": written}
        for question, answer in QUESTIONS
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kinds = {
        "likelihood": ("loglikelihood", "{{answer}}", "", [("perplexity", "perplexity", "false")]),
        "choice": ("multiple_choice", "0", 'doc_to_choice: "{{choices}}"\n', [("acc", "mean", "true")]),
        "whole": ("loglikelihood_rolling", "{{question}}", "", [("byte_perplexity", "weighted_perplexity", "false")]),
        "written": (
            "generate_until",
            "{{written}}",
            'generation_kwargs: {max_gen_toks: 6, until: ["~"], do_sample: false}\n',
            [("chrf", "chrf", "true")],
        ),
    }
    paths = {}
    for name, (kind, target, more, metrics) in kinds.items():
        figures = "".join(_FIGURE.format(*metric) for metric in metrics)
        paths[name] = folder / f"{name}.yaml"
        paths[name].write_text(_TASK.format(name=name, file=file, kind=kind, target=target, more=more, metrics=figures))
    return paths


WITHIN = 1e-4
"""Of a perplexity, relative: tens of logarithms of some ten each in float32, with room for other processors."""


def by_lm_eval(model: Path, tasks: list[str], adapter: Path | None = None) -> dict[str, float]:
    """What lm-eval has of a folder with a language model, which it loads itself, or of what peft loads."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    if adapter is None:
        asked = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=2)
    else:  # one by one: peft counts positions from the padding
        loaded = AutoPeftModelForCausalLM.from_pretrained(adapter, dtype=torch.float32)
        asked = HFLM(pretrained=loaded, tokenizer=AutoTokenizer.from_pretrained(model), batch_size=1)
    results: Any = simple_evaluate(
        asked,
        tasks=tasks,
        task_manager=TaskManager(include_defaults=False),
        bootstrap_iters=0,
        apply_chat_template=True,
        system_instruction="add",
    )
    figures = ((task, key, value) for task, values in results["results"].items() for key, value in values.items())
    means = ((task, key, value) for task, key, value in figures if "," in key and "stderr" not in key)
    return {f"{task}/{key.removesuffix(',none')}": float(value) for task, key, value in means}


def loads_of(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The language models that are loaded to be measured, from now on."""
    loaded: list[object] = []

    def counted(*given: Any, **options: Any) -> Any:
        loaded.append(load_language_model(*given, **options))
        return loaded[-1]

    monkeypatch.setattr(predictors, "load_language_model", counted)
    return loaded


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:Position ids are not supported:UserWarning")
@pytest.mark.parametrize("method", rotation.parts(("lora_qv", "prompt_tuning:l=4")))
def test_lm_eval_measures_a_confirmation_as_it_measures_its_exports(
    method, tmp_path, tiny_backbone, monkeypatch, capsys
):
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    file = chat_study(tmp_path / "sums", tiny_backbone("qwen3"), name="sums", system="add", method=method)
    assert main(["launch", str(file), "--quiet"]) == 0
    tasks = [str(path) for path in harness_tasks(tmp_path).values()]
    asked = ["confirm", "sums", "--top", "1", "--seeds", "2", "--against", "none"]
    assert main([*asked, "--quiet", "--lm-eval", tasks[0]]) == 0
    capsys.readouterr()
    loaded = loads_of(monkeypatch)
    assert main([*asked, "--json", "--lm-eval", ",".join(tasks)]) == 0  # what is there already is not measured again
    out, err = capsys.readouterr()
    assert len(loaded) == 1, "two trials share the backbone"
    assert "sums-confirm: lm-eval has measured 1 of 2 trials" in err
    (winner,) = json.loads(out)["confirmation"]["contenders"]
    if method == "lora_qv":
        assert main(["export", "sums-confirm", "0", str(tmp_path / "merged"), "--merge"]) == 0
        measured = by_lm_eval(tmp_path / "merged", tasks)
    else:
        assert main(["export", "sums-confirm", "0", str(tmp_path / "adapter"), "--format", "peft"]) == 0
        measured = by_lm_eval(tmp_path / "sums" / "backbone", tasks, adapter=tmp_path / "adapter")
    known = {one: open_study("sums-confirm").trial(one).page.readings[-1].metrics for one in (0, 1)}
    assert known[0]["likelihood/perplexity"] != known[1]["likelihood/perplexity"]
    assert {name: value for name, value in known[0].items() if "/" in name} == pytest.approx(measured, rel=WITHIN)
    assert set(measured) == {"likelihood/perplexity", "choice/acc", "whole/byte_perplexity", "written/chrf"}
    for name, spread in winner["elsewhere"].items():
        assert spread["mean"] == pytest.approx((known[0][name] + known[1][name]) / 2)
    plain = by_lm_eval(tmp_path / "sums" / "backbone", tasks)
    assert plain["likelihood/perplexity"] != pytest.approx(measured["likelihood/perplexity"], rel=10 * WITHIN)
    assert measured["written/chrf"] > 0
    result = open_study("sums").confirm(top=1, seeds=2, against=(), lm_eval=tasks[:2], lm_eval_limit=2, progress=False)
    assert set(result.winner.elsewhere) == {*measured, "likelihood[:2]/perplexity", "choice[:2]/acc"}
    events = open_study("sums-confirm").events
    said = events[events["kind"] == "harness"]["text"].tolist()
    assert [text.partition(": ")[2] for text in said] == [
        each for each in ("likelihood", "choice, whole, written", "likelihood[:2], choice[:2]") for _ in "ab"
    ]
    capsys.readouterr()
    assert main(asked) == 0
    assert "likelihood[:2]/perplexity" in capsys.readouterr().out
