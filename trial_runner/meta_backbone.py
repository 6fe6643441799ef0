"""Packs on the meta device: shapes of a backbone and a task, from which the memory of trials on a GPU is computed.

Only ``config.json`` is loaded: every weight is one number, expanded to the shape of the weight.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.attachment.frozen_model import Device, FrozenModel
from trial_runner.backbones import Backbone, BackboneSource, config_of
from trial_runner.backbones.backbone import backbone_of, check_quantization, model_without_weights
from trial_runner.linear_layers import held_bytes, products_of, quantize_on_meta
from trial_runner.objectives import OBJECTIVES
from trial_runner.packs.pack import TrialPack
from trial_runner.tasks import TASK_KINDS, Prepared, PreparedTask, PreparedTextTask, Split, Task, TextSplit
from trial_runner.tasks.token_rows import TokenRows

_EXAMPLES = 256
"""Number of examples of each split: at least that of a step, and of a pass of an evaluation."""
_EVALUATED = 16
"""Number of examples per slot in a pass of an evaluation."""
_OF_CLASSES = ("classification", "regression")
_ALL_IS_LEARNED = ("instruction",)


class MetaPack(TrialPack):
    """Pack of a backbone without weights; nothing can be trained in it.

    Attributes:
        weights_bytes: Bytes of the backbone's weights on a GPU.
        blocks_bytes: Bytes of each of its blocks.
        tokens: Number of tokens of every example.
    """

    def __init__(self, backbone: str | BackboneSource, task: Task, *, slots: int, as_gpu: bool = True) -> None:
        """Read the backbone's config.

        Args:
            backbone: Name of the backbone, or its source with the way its weights are held.
            task: Task; all of its texts have the largest length.
            slots: Number of trials.
            as_gpu: Whether it computes as a GPU would, with products in bf16; else as a CPU in fp32.

        Raises:
            BackboneError: If the backbone has no config, or its quantization library is not installed.
            UnsupportedBackboneError: If its family cannot be used.
        """
        register_attention()
        own = _model(BackboneSource.of(backbone), has_head=task.kind not in _OF_CLASSES, rounds_products=as_gpu)
        prepared = _task(task, own)
        self.weights_bytes = held_bytes(own.whole)
        device = Device(
            device=torch.device("cpu"),
            dtype=torch.float32,
            autocast=(lambda: torch.autocast("cpu", dtype=torch.bfloat16)) if as_gpu else nullcontext,
            stands_for_gpu=as_gpu,
        )
        frozen = FrozenModel.of(own, device)
        frozen.evaluation.examples = _EVALUATED
        objective = OBJECTIVES[prepared.objective].make(prepared, frozen)
        self.blocks_bytes = tuple(held_bytes(block) for block in frozen.attachment.blocks())
        self.tokens = int(objective.lengths("train")[0])
        super().__init__(frozen, objective, slots=slots)


def _model(source: BackboneSource, *, has_head: bool, rounds_products: bool) -> Backbone:
    """Return a backbone whose linear layers are in bf16 if it stands for one on a GPU."""
    check_quantization(source)
    config = config_of(source.name)
    kinds = {StackKind.DECODER: "AutoModelForCausalLM", StackKind.ENCODER_DECODER: "AutoModelForSeq2SeqLM"}
    whole, base = model_without_weights(
        source.name, kinds[shape_of(config).kind] if has_head else "AutoModel", ATTENTION
    )
    is_half = source.dtype == "bf16"
    if source.quantization != "none":
        quantize_on_meta(whole, source.quantization, torch.bfloat16 if is_half else torch.float32)
    products = {id(layer) for layer in products_of(whole)} if rounds_products and source.dtype != "fp32" else set()
    made: dict[int, nn.Parameter] = {}
    for module in whole.modules():
        for key, own in [*module.named_parameters(recurse=False, remove_duplicate=False)]:
            if id(own) not in made:
                dtype = torch.bfloat16 if is_half or id(module) in products else torch.float32
                made[id(own)] = nn.Parameter(_expanded(own, dtype), requires_grad=False)
            setattr(module, key, made[id(own)])
        for key, buffer in [*module.named_buffers(recurse=False, remove_duplicate=False)]:
            setattr(module, key, _expanded(buffer, buffer.dtype))
    return backbone_of(source, config, base, "", language_model=whole if has_head else None)


def _expanded(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros((), dtype=dtype).expand(tensor.shape)


def _task(task: Task, backbone: Backbone) -> Prepared:
    """Return a task whose examples all have the largest length of the task and the backbone's positions."""
    most = backbone.position_limit_tokens or 1 << 30
    longest = min(task.max_tokens, most)
    if task.kind in _OF_CLASSES:
        rows = _rows(longest)
        labels = np.arange(_EXAMPLES, dtype=np.int64) % 2
        split = Split(input_ids=rows.ids, offsets=rows.offsets, labels=labels)
        return PreparedTask(
            name="imagined",
            labels=("0", "1"),
            metric="accuracy",
            splits=dict.fromkeys(("train", "validation", "test"), split),
            notes=(),
            fingerprint="",
        )
    is_decoder = backbone.shape.kind is StackKind.DECODER
    if task.kind in _ALL_IS_LEARNED:
        read, written = 1, longest - 1
    else:
        written = task.max_target_tokens
        read = max(1, min(longest, most - written)) if is_decoder else longest
    learned = _texts(backbone, read, written)
    new = task.most_new_tokens
    asked = learned if task.kind not in _ALL_IS_LEARNED else _texts(backbone, max(1, min(longest, most - new)), 1)
    return PreparedTextTask(
        name="imagined",
        task_kind=task.kind,
        stack=backbone.shape.kind,
        metric=task.metric,
        metrics=task.metrics or TASK_KINDS[task.kind].metrics,
        decoding=task.decoding,
        max_new_tokens=new,
        label_smoothing=0.0,
        start_token_id=None,
        eos_token_id=0,
        splits={"train": learned, "validation": learned, "test": asked},
        notes=(),
        fingerprint="",
    )


def _texts(backbone: Backbone, read: int, written: int) -> TextSplit:
    return TextSplit(
        stack=backbone.shape.kind,
        sources=_rows(read),
        targets=_rows(written),
        references=(),
        groups=("",) * _EXAMPLES,
    )


def _rows(tokens: int) -> TokenRows:
    offsets: Any = np.arange(_EXAMPLES + 1, dtype=np.int64) * tokens
    return TokenRows(ids=np.ones(_EXAMPLES * tokens, dtype=np.int32), offsets=offsets)
