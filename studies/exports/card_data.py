"""What the hub reads of a model card: base model, data, metrics, tags."""

from typing import TYPE_CHECKING, Any

from studies.exports.source import Source
from studies.specification.sections import task_from_json
from trial_runner.backbones import EMBEDDED
from trial_runner.backbones.locate import source_of
from trial_runner.export.origin import licence_of
from trial_runner.huggingface import is_hub_name
from trial_runner.tasks import TASK_KINDS
from trial_runner.tasks.measuring import PROXY_LOSS

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData

_LIBRARIES = {"peft": "peft", "merged": "transformers"}
_PIPELINES = {
    "classification": "text-classification",
    "regression": "text-classification",
    "summarisation": "summarization",
    "translation": "translation",
    "question_answering": "question-answering",
}
_OTHER_TEXT = "text-generation"
_OWN_DATA = "own data"
"""What data of a folder are called; the name of a folder of work says nothing elsewhere."""


def card_data(source: Source, kind: str) -> "ModelCardData":
    """The lines at the top of a card.

    Names that are no repositories of the hub are left out: it refuses cards that have them.

    Args:
        kind: ``deltaspace``, ``peft`` or ``merged``.
    """
    from huggingface_hub import ModelCardData

    study = source.study
    task = task_from_json(study.specification["task"])
    backbone = source_of(study.backbone)
    is_from_hub = study.backbone != EMBEDDED and backbone == study.backbone and is_hub_name(backbone)
    tags = ["delta-tuning", "parameter-efficient-fine-tuning", "deltaspace"]
    licence = licence_of(study.backbone)
    # a folder of the same name would win, so a name here is one of the hub
    return ModelCardData(
        base_model=backbone if is_from_hub else None,
        base_model_relation=("adapter" if kind != "merged" else "finetune") if is_from_hub else None,
        datasets=[task.hub.name] if task.hub else None,
        language=None,
        library_name=_LIBRARIES.get(kind, "deltaspace"),
        license=None if licence is None else licence.lower().replace(" ", "-"),  # as the hub writes it
        metrics=[study.metric],
        pipeline_tag=_PIPELINES.get(task.kind, _OTHER_TEXT),
        tags=[*tags, *([source.trial.method] if source.trial.method else [])],
        **_results(source, (task.hub.name if task.hub else task.name) or _OWN_DATA, TASK_KINDS[task.kind].name),
    )


def _results(source: Source, dataset: str, kind: str) -> dict[str, Any]:
    """What was measured last, for the hub's table of results."""
    from huggingface_hub import EvalResult

    last = source.readings[-1] if source.readings else None
    metric = source.study.metric
    if last is None or PROXY_LOSS in last.metrics or metric not in last.metrics:
        return {}
    result = EvalResult(
        task_type=_PIPELINES.get(kind, _OTHER_TEXT),
        dataset_type=dataset,
        dataset_name=dataset,
        dataset_split=source.split,
        metric_type=metric,
        metric_value=last.metrics[metric],
    )
    return {"model_name": source.title, "eval_results": [result]}
