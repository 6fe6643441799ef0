"""Tasks of lm-eval that need no hub: YAML files beside a table of their questions."""

import json
import string
from pathlib import Path

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
