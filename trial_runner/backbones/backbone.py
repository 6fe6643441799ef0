"""Loading a backbone: the frozen base model, its shape, its tokenizer, and the head that writes texts.

Imports torch only when it loads.
"""

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from search_space.backbones import Family, family_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from trial_runner.backbones.locate import config_of, padding_token, position_limit, source_of
from trial_runner.backbones.tokenizer import load_tokenizer
from trial_runner.backbones.weight_files import check_folder
from trial_runner.errors import BackboneError
from trial_runner.huggingface import hub_access, one_line, quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

Precision = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backbone:
    """A pretrained transformer that no trial may change.

    Attributes:
        name: ``"embedded"``, a folder, or a hub name.
        model: The base model without task head and pooler, in evaluation mode, no parameter with a gradient.
        shape: Its sizes; ``shape.parameters`` is the denominator of percentages.
        position_limit_tokens: Longest input; None if there is no limit.
        pad_token_id: The id that fills short rows; of a model without a padding token its end of text.
        weights_sha256: Hash of the loaded weights, as ``weights_sha256`` computes it.
    """

    name: str
    model: "torch.nn.Module"
    shape: BackboneShape
    family: Family
    position_limit_tokens: int | None
    pad_token_id: int
    weights_sha256: str

    def load_tokenizer(self) -> "PreTrainedTokenizerFast":
        """The tokenizer that belongs to the backbone, read anew. Raises `BackboneError` if there is none."""
        return load_tokenizer(self.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LanguageModel:
    """A backbone with the head that it was pretrained to write texts with, which no trial may change either.

    Attributes:
        backbone: Its base model; `load_backbone` gives an equal one.
        model: The language model, whose modules those of the base model are.
    """

    backbone: Backbone
    model: "torch.nn.Module"


def load_backbone(name: str, *, precision: Precision = "float32", attn_implementation: str = "eager") -> Backbone:
    """Load a backbone and freeze it.

    Args:
        name: ``"embedded"``, a folder with a ``config.json``, or a hub name.
        precision: Of the weights. Mixed precision is the runner's matter; ``float64`` is for exact comparisons.
        attn_implementation: Name under which an attention function is registered with transformers.

    Raises:
        UnsupportedBackboneError: If the family is unknown or cannot be used; before any weights are read.
        BackboneError: If the backbone cannot be found or read, or lacks weights.
    """
    config = config_of(name)
    _check_files(name, family_of(config).read_shape(config))
    return _backbone(name, config, _frozen_model(name, "AutoModel", precision, attn_implementation))


def load_language_model(
    name: str, *, precision: Precision = "float32", attn_implementation: str = "eager"
) -> LanguageModel:
    """Load a backbone with its own language-model head; see `load_backbone`.

    Raises:
        UnsupportedBackboneError: If the family is unknown or cannot be used; before any weights are read.
        BackboneError: If the backbone is an encoder, cannot be found or read, or lacks weights.
    """
    config = config_of(name)
    shape = family_of(config).read_shape(config)
    kind = shape.kind
    if kind is StackKind.ENCODER:
        raise BackboneError(
            f"backbone {name} must be an encoder-decoder or a decoder to write texts; got an encoder. Choose another."
        )
    _check_files(name, shape)
    of_kind = "AutoModelForCausalLM" if kind is StackKind.DECODER else "AutoModelForSeq2SeqLM"
    model = _frozen_model(name, of_kind, precision, attn_implementation)
    return LanguageModel(backbone=_backbone(name, config, _base_of(model)), model=model)


def _check_files(name: str, shape: BackboneShape) -> None:
    folder = Path(source_of(name))
    if folder.is_dir():
        check_folder(name, folder, shape)


def _backbone(name: str, config: Mapping[str, Any], base: "torch.nn.Module") -> Backbone:
    family = family_of(config)
    return Backbone(
        name=name,
        model=base,
        shape=family.read_shape(config),
        family=family,
        position_limit_tokens=position_limit(config),
        pad_token_id=padding_token(config),
        weights_sha256=weights_sha256(base),
    )


def products_of(model: "torch.nn.Module") -> "Iterator[torch.nn.Linear]":
    """The linear layers of a model whose weights are nothing else, as that of a head may be the embedding."""
    from torch import nn

    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    yield from (one for one in model.modules() if isinstance(one, nn.Linear) and id(one.weight) not in tables)


def model_without_weights(
    name: str, of_kind: str, attn_implementation: str
) -> tuple["torch.nn.Module", "torch.nn.Module"]:
    """A model on the device ``meta``, by its config alone, and the base model within it.

    Args:
        name: Of the backbone.
        of_kind: One of the automatic classes of transformers.
        attn_implementation: See `load_backbone`.

    Raises:
        BackboneError: If transformers cannot make it.
    """
    source = source_of(name)
    with hub_access(source), quiet_transformers():
        import torch
        import transformers

        try:
            config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
            options: dict[str, Any] = _without_pooler(config) if of_kind == "AutoModel" else {}
            with torch.device("meta"):
                model = getattr(transformers, of_kind).from_config(
                    config, attn_implementation=attn_implementation, dtype=torch.float32, **options
                )
        except (OSError, ValueError) as error:
            raise BackboneError(f"config of backbone {name} must be readable; {one_line(error)}") from error
    model.requires_grad_(False).eval()
    return model, model if of_kind == "AutoModel" else _base_of(model)


def _base_of(model: "torch.nn.Module") -> "torch.nn.Module":
    """The base model within a language model; of T5, which has none, one of the same modules."""
    import torch
    from transformers import AutoModel

    base: torch.nn.Module = model.base_model  # type: ignore[assignment]
    if base is not model:
        return base
    with torch.device("meta"):
        base = AutoModel.from_config(model.config)
    for part, _ in list(base.named_children()):
        setattr(base, part, model.get_submodule(part))
    return base.eval()


def weights_sha256(model: "torch.nn.Module") -> str:
    """SHA-256 over the names, shapes and values (as float32) of a model's weights, as hex.

    Equal for any file format and for ``float32`` and ``float64`` loads of the same stored weights.
    """
    return tensors_sha256(model.state_dict())


def tensors_sha256(tensors: "Mapping[str, Any]") -> str:
    """As `weights_sha256`, of tensors by name."""
    digest = hashlib.sha256()
    for key, tensor in sorted(tensors.items()):
        digest.update(f"{key}{tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.detach().float().cpu().contiguous().numpy()).cast("B"))
    return digest.hexdigest()


def _frozen_model(name: str, of_kind: str, precision: Precision, attn_implementation: str) -> "torch.nn.Module":
    """A model with every weight from the files, in evaluation mode.

    Args:
        of_kind: One of the automatic classes of transformers.
        attn_implementation: See `load_backbone`.
    """
    source = source_of(name)
    with hub_access(source), quiet_transformers():
        import torch
        import transformers
        from safetensors import SafetensorError

        try:
            config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
            options: dict[str, Any] = _without_pooler(config) if of_kind == "AutoModel" else {}
            if precision == "float64":
                options["experts_implementation"] = "eager"  # the products of experts that are grouped are none of it
            model, report = getattr(transformers, of_kind).from_pretrained(
                source,
                dtype=getattr(torch, precision),
                attn_implementation=attn_implementation,
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
                **options,
            )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise BackboneError(f"weights of backbone {name} must be readable; {one_line(error)}") from error
    if getattr(model, "_hf_peft_config_loaded", False) or model.name_or_path != source:
        raise BackboneError(
            f"backbone {name} must be a whole model; it is an adapter of {model.name_or_path}. Merge it first."
        )
    missing = sorted(name for name in report["missing_keys"] if _is_stored(model, name))
    if missing:
        raise BackboneError(
            f"weights of backbone {name} must be complete; {len(missing)} are missing, such as {missing[0]}."
        )
    model_of_any_kind: torch.nn.Module = model
    return model_of_any_kind.requires_grad_(False).eval()


def _is_stored(model: "torch.nn.Module", name: str) -> bool:
    """Whether weights of this name must be in the files; those that their module computes, as positions, need not."""
    return not hasattr(model.get_submodule(name.rpartition(".")[0]), "create_weight")


def _without_pooler(config: Any) -> dict[str, bool]:
    """The option that leaves the pooler away, if the model class has one."""
    from transformers import MODEL_MAPPING

    parameters = inspect.signature(MODEL_MAPPING[type(config)].__init__).parameters
    return {"add_pooling_layer": False} if "add_pooling_layer" in parameters else {}
