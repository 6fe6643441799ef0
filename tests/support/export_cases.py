"""Cases of exports: a trial after training, and its logits."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from support.tiny_backbones import rig_of
from torch import Tensor

from search_space.codec import configuration_to_json
from search_space.configuration import Configuration
from search_space.edit import Edit
from trial_runner.attachment.inputs import model_inputs
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model.sparse import SparseDelta
from trial_runner.export import BackboneFacts, TrainedDelta, new_folder, trained_delta, write_delta
from trial_runner.huggingface import quiet_transformers
from trial_runner.port_discovery.edit_properties import moved
from trial_runner.port_discovery.examples import examples_at
from trial_runner.port_discovery.rig import Rig, sites_of
from trial_runner.requests import Snapshot
from trial_runner.seeds import derived_seed
from trial_runner.tasks import Batch

LABELS = ("no", "yes", "perhaps")
SEED = 11

TEXTS = Batch(
    input_ids=torch.randint(6, 60, (3, 7), generator=torch.Generator().manual_seed(0)).numpy(),
    attention_mask=(torch.arange(7) < torch.tensor([[7], [5], [2]])).numpy(),
    token_type_ids=None,
    labels=torch.zeros(3, dtype=torch.long).numpy(),
)


@dataclass(frozen=True, kw_only=True)
class ExportTrial:
    """A trial at its last step.

    Attributes:
        deltas: Its modules.
        head: Weight and bias of its head.
        snapshot: What a pack says of it.
    """

    deltas: DeltaSet
    head: tuple[Tensor, Tensor]
    snapshot: Snapshot


def rig_in_training(folder: Path, precision: str = "float64") -> Rig:
    """Return a backbone as in a pack, with the cache that its config enables."""
    torch.set_num_threads(1)
    rig = rig_of(folder, precision=precision)
    rig.backbone.model.config.use_cache = True
    return rig


def every_example(rig: Rig) -> Iterator[Edit]:
    for site in sites_of(rig.backbone):
        yield from examples_at(site, rig.backbone.shape)


def trial_of(rig: Rig, *edits: Edit) -> ExportTrial:
    """Return a trial whose every parameter has moved from its start."""
    dtype = next(rig.backbone.model.parameters()).dtype
    configuration, shape = Configuration(edits=edits), rig.backbone.shape
    seed = derived_seed(SEED, "deltas")
    deltas = DeltaSet(configuration, shape, seed=seed, dtype=dtype, frozen=rig.weights())
    moved(deltas)
    if isinstance(deltas.whole, SparseDelta):
        assert deltas.whole.after_step(1, 1)  # it keeps its largest changes
    generator = torch.Generator().manual_seed(5)
    head = (torch.randn(3, shape.width, generator=generator).to(dtype), torch.randn(3, generator=generator).to(dtype))
    tensors = {"head.weight": head[0], "head.bias": head[1]}
    parameters = dict(deltas.named_parameters())
    for name, tensor in deltas.state_dict().items():
        tensors[f"deltas.{name}" if name in parameters else f"buffers.deltas.{name}"] = tensor.clone()
    tensors |= {f"optimizer.exp_avg.deltas.{name}": torch.ones_like(one) for name, one in parameters.items()}
    facts: dict[str, Any] = {
        "trial": 4,
        "seed": SEED,
        "configuration": configuration_to_json(configuration),
        "labels": list(LABELS),
        "backbone_sha256": rig.backbone.weights_sha256,
    }
    snapshot = Snapshot(trial=4, step=30, facts=facts, tensors=tensors)
    return ExportTrial(deltas=deltas.eval(), head=head, snapshot=snapshot)


def hidden_of(model: Any, backbone: Backbone, *, what: str = "last_hidden_state") -> Tensor:
    """Last hidden states ``(B, T, D)`` of the texts, or other outputs of a model."""
    inputs = model_inputs(TEXTS, backbone.shape.kind, torch.device("cpu"), model.config)
    with torch.no_grad():
        hidden: Tensor = getattr(model(**inputs), what)
    return hidden


def logits_of(rig: Rig, trial: ExportTrial) -> Tensor:
    """Compute the logits of the trained slot: the mean of the real tokens' outputs, then its head."""
    with rig.attachment.using(trial.deltas):
        hidden = hidden_of(rig.backbone.model, rig.backbone)
    return head_logits(hidden, trial.head)


def head_logits(hidden: Tensor, head: tuple[Tensor, Tensor]) -> Tensor:
    mask = torch.from_numpy(TEXTS.attention_mask).to(head[0].dtype).unsqueeze(-1)
    pooled = (hidden.to(head[0].dtype) * mask).sum(dim=1) / mask.sum(dim=1)
    return torch.nn.functional.linear(pooled, *head)


def trained_of(rig: Rig, trial: ExportTrial) -> TrainedDelta:
    return trained_delta(trial.snapshot, rig.backbone.shape, frozen=rig.weights())


def facts_of(backbone: Backbone) -> BackboneFacts:
    return BackboneFacts(
        name=backbone.name,
        revision=None,
        weights_sha256=backbone.weights_sha256,
        family=backbone.family.name,
        parameters=backbone.shape.parameters,
    )


def exported(rig: Rig, trial: ExportTrial, folder: Path) -> Path:
    """Write the trial in the project's own format."""
    with new_folder(folder) as place:
        write_delta(place, trained_of(rig, trial), backbone=facts_of(rig.backbone))
    return folder


def fresh_model(rig: Rig, **options: Any) -> Any:
    """Load the backbone as users do, in the precision of the rig."""
    from transformers import AutoModel

    with quiet_transformers():
        return AutoModel.from_pretrained(rig.backbone.name, dtype=rig.backbone.model.dtype, **options).eval()
