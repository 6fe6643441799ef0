"""Edits folded into the weights of a backbone, which becomes a plain model of `transformers`."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbones import BackboneFamily, PortLocation, PortTable
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Port, Site, StackKind
from search_space.mergeability import PROJECTION_OUTPUTS, SOLE_READERS, unmergeable_edits
from trial_runner.backbones import Backbone, tokenizer_id
from trial_runner.backbones.backbone import language_model_class
from trial_runner.backbones.locate import padding_token, source_of
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.errors import ExportError, ExportRequestError
from trial_runner.export import mean_pooled
from trial_runner.export.heads import TaskHead
from trial_runner.export.mean_pooled import MeanPooledClassifier, MeanPooledConfig
from trial_runner.huggingface import hub_access, quiet_transformers
from trial_runner.linear_layers import dense_weight, hold_dense


class LinearSlice:
    """Linear layer of a port: a whole module, or the columns of a fused one.

    Args:
        module: ``nn.Linear``, which stores ``(D_out, D_in)``, or the ``Conv1D`` of GPT-2, which stores the transpose.
        location: Location of the port that the layer writes.
    """

    def __init__(self, module: nn.Module, location: PortLocation) -> None:
        """Read the columns of the port in float64."""
        self._weight = dense_weight(module)  # (D_in, all columns)
        bias = module.bias
        self._bias = bias.detach() if isinstance(bias, Tensor) else None
        self._columns = location.columns(self._weight.shape[1])
        self.matrix = self._weight[:, self._columns].double()  # (D_in, D_out)
        none = torch.zeros(self.matrix.shape[1], dtype=torch.float64, device=self._weight.device)
        self.bias = none if self._bias is None else self._bias[self._columns].double()  # (D_out,)

    def add(self, parallel: Affine) -> None:
        """Add a map of the same input, in parallel."""
        self.matrix = self.matrix + parallel.matrix(self.matrix)
        self.bias = self.bias if parallel.shift is None else self.bias + parallel.shift

    def follow(self, after: Affine, *, replaces: bool) -> None:
        """Apply a map to the layer's output; the result is added to the output or replaces it."""
        matrix, bias = after(self.matrix), after(self.bias.unsqueeze(0)).squeeze(0)
        self.matrix = matrix if replaces else self.matrix + matrix
        self.bias = bias if replaces else self.bias + bias
        self.bias = self.bias if after.shift is None else self.bias + after.shift

    def precede(self, first: Affine, *, replaces: bool) -> None:
        """Apply a map to the layer's input; the result is added to the input or replaces it."""
        if first.shift is not None:
            self.bias = self.bias + first.shift @ self.matrix
        matrix = first.before(self.matrix)
        self.matrix = matrix if replaces else self.matrix + matrix

    def store(self) -> None:
        """Write the matrix and the bias back into the module.

        Raises:
            ExportError: If the bias is not zero and the module has none.
        """
        self._weight[:, self._columns] = self.matrix.to(self._weight.dtype)
        if self._bias is not None:
            self._bias[self._columns] = self.bias.to(self._bias.dtype)
        elif self.bias.any():
            raise ExportError("a layer with a merged bias must have a bias itself; got none. This is a bug.")


@torch.no_grad()
def merge(model: nn.Module, deltas: DeltaSet, family: BackboneFamily, shape: BackboneShape) -> None:
    """Fold trained deltas into the weights of a base model, in place; quantised weights become dense first.

    Args:
        model: Base model, with the weights that the deltas were trained on.
        deltas: Deltas of a mergeable configuration.

    Raises:
        ExportError: If an edit cannot be merged; the error names it, and the model is unchanged.
    """
    obstacles = unmergeable_edits(deltas.configuration, shape)
    if obstacles:
        listed = "; ".join(f"{name}: {why}" for name, why in obstacles.items())
        raise ExportRequestError(
            f"every edit must be linear to be merged into the weights; got {listed}. Leave --merge out."
        )
    if deltas.whole is not None:
        named = dict(model.named_parameters())
        for name, weight in deltas.whole.weights().items():
            named[name].copy_(weight)
    hold_dense(model)
    table = family.ports(shape)
    for sublayer, some in deltas.sublayers.items():
        if sublayer.site is Site.STACK:
            _merge_norm(model.get_submodule(table.stack_norms[sublayer.layer]), some)
        else:
            _merge_sublayer(model, table, sublayer, some)


def _merge_sublayer(model: nn.Module, table: PortTable, sublayer: Sublayer, deltas: Sequence[PortDelta]) -> None:
    block = model.get_submodule(table.layers[sublayer.stack].format(layer=sublayer.layer))
    read_by = {written: read for read, written in SOLE_READERS.items()}
    for port in PROJECTION_OUTPUTS:
        read = read_by.get(port, port)
        own = [delta for delta in deltas if delta.edit.write is port]
        before = [delta for delta in deltas if delta.edit.write is read is not port and delta.is_sequential]
        if not own and not before:
            continue
        location = table.ports[sublayer.stack, sublayer.site, port]
        linear = LinearSlice(block.get_submodule(location.module), location)
        for delta in sorted(own, key=attrgetter("is_sequential")):
            if delta.is_sequential:
                linear.follow(delta.affine(), replaces=delta.edit.gate.multiplies)
            else:
                linear.add(delta.affine())
        for delta in reversed(before):
            linear.precede(delta.affine(), replaces=delta.edit.gate.multiplies)
        linear.store()
    of_norm = [delta for delta in deltas if delta.edit.write is Port.NORM]
    if of_norm:
        location = table.ports[sublayer.stack, sublayer.site, Port.NORM]
        _merge_norm(block.get_submodule(location.module), of_norm)


def _merge_norm(norm: nn.Module, deltas: Sequence[PortDelta]) -> None:
    """Add the constants of edits to the bias of a LayerNorm, which no other edits write."""
    for delta in deltas:
        bias, shift = norm.bias, delta.affine().shift
        if not isinstance(bias, Tensor) or shift is None:
            raise ExportError("a LayerNorm with a merged constant must have a bias; got none. This is a bug.")
        bias.copy_(bias.double() + shift)


def write_merged(
    folder: Path, backbone: Backbone, deltas: DeltaSet, head: TaskHead | None, *, max_tokens: int | None = None
) -> None:
    """Write a backbone with merged deltas as a folder for `transformers`, with tokenizer and head.

    A model with a task head is a `MeanPooledClassifier`, whose Python file is copied next to the weights. Without one,
    an encoder is written as its base model, and any other backbone as the language model of the search.

    Args:
        folder: Existing folder; see `new_folder`.
        backbone: Backbone of the deltas; it is not changed.
        deltas: Deltas of a mergeable configuration.
        head: Task head; None without one.
        max_tokens: Number of tokens to which the tokenizer truncates texts; None for the tokenizer's own limit.

    Raises:
        ExportError: If an edit cannot be merged; the error names it.
    """
    model: Any = copy.deepcopy(backbone.model)
    merge(model, deltas, backbone.family, backbone.shape)
    tokenizer: Any = copy.deepcopy(backbone.load_tokenizer())
    if head is not None:
        whole = _classifier(model, head)
        most = max_tokens if tokenizer.truncation_side == "right" else None
        whole.config.cut = None if most is None else _truncation(tokenizer, most)
        shutil.copy(mean_pooled.__file__, folder)
    else:
        whole = model if backbone.shape.kind is StackKind.ENCODER else _with_language_model(backbone, model)
    tokenizer.padding_side = "left" if head is None and backbone.shape.kind is StackKind.DECODER else "right"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.model_max_length = max_tokens or tokenizer.model_max_length
    if head is not None and max_tokens is not None and hasattr(tokenizer, "backend_tokenizer"):
        tokenizer.backend_tokenizer.enable_truncation(max_tokens, direction=tokenizer.truncation_side)
    with quiet_transformers():
        whole.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    stored, own = (tokenizer_id(one) for one in (merged_tokenizer(folder), tokenizer))
    if stored != own:
        raise ExportRequestError(
            f"the tokenizer in a merged folder must equal that of {backbone.name}, {own[:12]}; got {stored[:12]}. "
            "Leave --merge out."
        )


def merged_tokenizer(folder: Path) -> Any:
    """Load the tokenizer next to merged weights as `AutoTokenizer` does with ``trust_remote_code=True``."""
    from transformers import AutoTokenizer

    is_classifier = (folder / Path(mean_pooled.__file__).name).exists()
    options = {"config": MeanPooledConfig()} if is_classifier else {}
    with quiet_transformers():
        return AutoTokenizer.from_pretrained(folder, **options)


def _classifier(base: Any, head: TaskHead) -> Any:
    """Join a base model and a head to one model of transformers."""
    module = Path(mean_pooled.__file__).stem
    classes = {"AutoConfig": MeanPooledConfig, "AutoModelForSequenceClassification": MeanPooledClassifier}
    names = dict(enumerate(head.labels))
    config = MeanPooledConfig(
        backbone=base.config.to_diff_dict() | {"model_type": base.config.model_type},
        id2label=names,
        label2id={name: index for index, name in names.items()},
        pad_token_id=padding_token(base.config.to_dict()),
        auto_map={auto: f"{module}.{kind.__name__}" for auto, kind in classes.items()},
    )
    whole = MeanPooledClassifier(config).to(base.dtype).eval()
    whole.backbone.load_state_dict(base.state_dict())
    whole.classifier.load_state_dict(head.tensors())
    return whole


def _truncation(tokenizer: Any, max_tokens: int) -> dict[str, Any]:
    """Return the classifier's truncation: the length, and the special tokens around one or two texts."""
    text, one, two = (
        tokenizer(*texts, add_special_tokens=is_whole)["input_ids"]
        for texts, is_whole in ((("a",), False), (("a",), True), (("a", "a"), True))
    )
    first = next(at for at in range(len(one)) if one[at : at + len(text)] == text)
    after = one[first + len(text) :]
    between = two[first + len(text) : len(two) - len(text) - len(after)]
    return {"max_tokens": max_tokens, "before": one[:first], "between": between, "after": after}


def _with_language_model(backbone: Backbone, base: Any) -> Any:
    """Return the language model of the search, with the weights of a base model.

    Its class depends on the kind of backbone, as in the search. The class in a checkpoint's ``architectures`` may be
    missing or have another head.
    """
    import transformers

    kind: Any = getattr(transformers, language_model_class(backbone.shape.kind))
    source = source_of(backbone.name)
    with hub_access(source), quiet_transformers():
        whole = kind.from_pretrained(source, dtype=base.dtype, use_safetensors=True, trust_remote_code=False)
    weights: Mapping[str, Tensor] = base.state_dict()
    unknown = whole.base_model.load_state_dict(weights, strict=False).unexpected_keys
    if unknown:
        name = type(whole).__name__
        raise ExportError(f"{name} must hold the weights of its base model; got none for {unknown[0]}. This is a bug.")
    return whole
