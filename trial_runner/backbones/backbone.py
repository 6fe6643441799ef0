"""Loading of a backbone: the frozen base model, its shape, its tokenizer, and its language-model head.

Imports torch only when it loads.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from search_space.backbones import BackboneFamily, family_of, shape_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from trial_runner.backbones.locate import config_of, padding_token, position_limit, source_of
from trial_runner.backbones.source import BackboneSource, Quantization
from trial_runner.backbones.tokenizer import load_tokenizer
from trial_runner.backbones.weight_files import check_folder
from trial_runner.backbones.weight_hash import files_sha256, loaded_sha256
from trial_runner.errors import BackboneError
from trial_runner.huggingface import hub_access, one_line, quiet_transformers
from trial_runner.silence import quiet_quantizers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

Precision = Literal["float32", "float64"]
_MARKS = ("quantization_method", "hf_quantizer", "is_quantized", "is_loaded_in_4bit", "is_loaded_in_8bit")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backbone:
    """Pretrained transformer that no trial may change.

    Attributes:
        source: Its name, and the storage of its weights.
        model: Base model without task head and pooler, in evaluation mode, no parameter with a gradient.
        shape: Its sizes; ``shape.parameters`` is the denominator of percentages.
        position_limit_tokens: Number of tokens of the longest input; None if there is no limit.
        pad_token_id: Id that fills short rows; of a model without a padding token its end of text.
        weights_sha256: Hash of the loaded weights, as `trial_runner.backbones.weights_sha256` computes it; of weights
            that are loaded as other numbers than their files have, of the files.
        language_model: Model with its pretrained language-model head, which shares the modules of the base model;
            None if it was loaded without.
    """

    source: BackboneSource
    model: "torch.nn.Module"
    shape: BackboneShape
    family: BackboneFamily
    position_limit_tokens: int | None
    pad_token_id: int
    weights_sha256: str
    language_model: "torch.nn.Module | None" = None

    @property
    def whole(self) -> "torch.nn.Module":
        """Loaded model: the language model, or the base model alone."""
        return self.model if self.language_model is None else self.language_model

    @property
    def name(self) -> str:
        """``"embedded"``, a folder, or a hub name."""
        return self.source.name

    def load_tokenizer(self) -> "PreTrainedTokenizerFast":
        """Load the tokenizer of the backbone. Raises `BackboneError` if there is none."""
        return load_tokenizer(self.name)


def load_backbone(
    source: str | BackboneSource,
    *,
    precision: Precision = "float32",
    attn_implementation: str = "eager",
    device: "torch.device | None" = None,
) -> Backbone:
    """Load a backbone and freeze it.

    Args:
        source: Source of the backbone, with the storage of its weights; or its name alone.
        precision: Type of weights that are neither bf16 nor quantised. Mixed precision is left to the runner;
            ``float64``
            is for exact comparisons.
        attn_implementation: Name of a registered attention function of transformers.
        device: GPU to which weights are read one by one; None leaves them on the host.

    Raises:
        UnsupportedBackboneError: If the family is unknown or cannot be used; before any weights are read.
        BackboneError: If the backbone cannot be found or read, lacks weights, or cannot be quantised here.
    """
    options = {"precision": precision, "attn_implementation": attn_implementation, "device": device}
    return _loaded(BackboneSource.of(source), "AutoModel", **options)


def load_language_model(
    source: str | BackboneSource,
    *,
    precision: Precision = "float32",
    attn_implementation: str = "eager",
    device: "torch.device | None" = None,
    keeps_layers: bool = False,
) -> Backbone:
    """Load a backbone with its own language-model head; see `load_backbone`.

    Args:
        source: See `load_backbone`, also for the arguments below.
        precision: See `load_backbone`.
        attn_implementation: See `load_backbone`.
        device: See `load_backbone`.
        keeps_layers: Whether quantised layers stay those of transformers, which peft requires.

    Raises:
        UnsupportedBackboneError: If the family is unknown or cannot be used; before any weights are read.
        BackboneError: If the backbone is an encoder, cannot be found or read, lacks weights, or cannot be quantised
            here.
    """
    source = BackboneSource.of(source)
    kind = shape_of(config_of(source.name)).kind
    if kind is StackKind.ENCODER:
        raise BackboneError(
            f"backbone {source.name} must be an encoder-decoder or a decoder to write texts; got an encoder. "
            "Choose another."
        )
    of_kind = language_model_class(kind)
    options = {"precision": precision, "attn_implementation": attn_implementation, "device": device}
    return _loaded(source, of_kind, keeps_layers=keeps_layers, **options)


def language_model_class(kind: StackKind) -> str:
    """Return the automatic class of transformers that loads a backbone with the head that writes texts."""
    return "AutoModelForCausalLM" if kind is StackKind.DECODER else "AutoModelForSeq2SeqLM"


def _loaded(source: BackboneSource, of_kind: str, **options: Any) -> Backbone:
    """Load a frozen backbone; see `_frozen_model`."""
    config = config_of(source.name)
    folder = Path(source_of(source.name))
    if folder.is_dir():
        check_folder(source.name, folder, shape_of(config))
    model = _frozen_model(source, of_kind, **options)
    is_base = of_kind == "AutoModel"
    base = model if is_base else base_of(model)
    sha256 = loaded_sha256(source.name, base) if source.is_as_stored else files_sha256(source.name)
    return backbone_of(source, config, base, sha256, language_model=None if is_base else model)


def backbone_of(
    source: BackboneSource,
    config: Mapping[str, Any],
    base: "torch.nn.Module",
    weights_sha256: str,
    *,
    language_model: "torch.nn.Module | None" = None,
) -> Backbone:
    """Return the backbone of a base model and its ``config.json``."""
    family = family_of(config)
    return Backbone(
        source=source,
        model=base,
        shape=family.read_shape(config),
        family=family,
        position_limit_tokens=position_limit(config),
        pad_token_id=padding_token(config),
        weights_sha256=weights_sha256,
        language_model=language_model,
    )


def model_without_weights(
    name: str, of_kind: str, attn_implementation: str
) -> tuple["torch.nn.Module", "torch.nn.Module"]:
    """Build a model on the device ``meta`` from its config; return it and the base model within it.

    Args:
        name: Name of the backbone.
        of_kind: Name of an automatic class of transformers.
        attn_implementation: See `load_backbone`.

    Raises:
        BackboneError: If transformers cannot build it.
    """
    source = source_of(name)
    with hub_access(source), quiet_transformers():
        import torch
        import transformers

        try:
            config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
            options: dict[str, Any] = without_pooler(config) if of_kind == "AutoModel" else {}
            with torch.device("meta"):
                model = getattr(transformers, of_kind).from_config(
                    config, attn_implementation=attn_implementation, dtype=torch.float32, **options
                )
        except (OSError, ValueError) as error:
            raise BackboneError(f"config of backbone {name} must be readable; {one_line(error)}") from error
    model.requires_grad_(False).eval()
    return model, model if of_kind == "AutoModel" else base_of(model)


def base_of(model: "torch.nn.Module") -> "torch.nn.Module":
    """Return the base model within a language model; of T5, which has none, one of the same modules."""
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


def check_quantization(source: BackboneSource) -> None:
    """Import the quantization library, if it is needed.

    Raises:
        BackboneError: If it is not installed.
    """
    if source.quantization == "none":
        return
    package = "torchao" if source.quantization == "int4" else "bitsandbytes"
    with quiet_quantizers():
        try:
            import_module(package)  # operations of bitsandbytes are known to torch once it is imported
        except ImportError as error:
            raise BackboneError(
                f"backbone.quantization: {source.quantization} needs {package}; {one_line(error)}. "
                "Run pip install 'deltaspace[quantization]'."
            ) from error


def loading_options(
    source: BackboneSource, precision: Precision = "float32", *, heads: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the options of ``from_pretrained`` for a storage of the weights.

    Args:
        source: Source with the storage of the weights.
        precision: See `load_backbone`.
        heads: Names of task heads, which are not quantised; transformers excludes the output layers of language models
            alone.

    Raises:
        BackboneError: If the quantization library is not installed.
    """
    import torch

    options: dict[str, Any] = {"dtype": torch.bfloat16 if source.dtype == "bf16" else getattr(torch, precision)}
    if source.quantization == "none":
        return options
    check_quantization(source)
    if options["dtype"] is torch.float64:  # codes are made of no more than 32 bits
        options["dtype"] = torch.float32
    return {**options, "quantization_config": _quantizer(source.quantization, heads)}


def _quantizer(quantization: Quantization, heads: Sequence[str]) -> Any:
    """Return the quantization config of transformers, with the heads excluded."""
    if quantization == "int4":
        with quiet_quantizers():
            import torch
            from torchao.quantization import IntxWeightOnlyConfig, PerGroup
            from transformers import TorchAoConfig

            from trial_runner.linear_layers import INT4_GROUP

            kind: Any = getattr(torch, quantization)  # torch says it nowhere to checkers of types
            codes = IntxWeightOnlyConfig(weight_dtype=kind, granularity=PerGroup(INT4_GROUP))
            return TorchAoConfig(codes, modules_to_not_convert=list(heads) or None)
    from transformers import BitsAndBytesConfig

    is_nf4 = quantization == "nf4"
    how = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"} if is_nf4 else {"load_in_8bit": True}
    left = {"llm_int8_skip_modules": list(heads)} if heads else {}
    return BitsAndBytesConfig(**how, **left)


def held_as(model: "torch.nn.Module") -> BackboneSource:
    """Return the storage of the weights of a loaded model of transformers."""
    import torch

    config: Any = getattr(model, "config", None)
    how: Any = getattr(config, "quantization_config", None)
    how = how.to_dict() if hasattr(how, "to_dict") else how or {}
    kind: Quantization = "nf4" if how.get("load_in_4bit") else "int8" if how.get("load_in_8bit") else "none"
    dtypes = {one.dtype for one in model.parameters() if one.is_floating_point()}
    return BackboneSource(
        name=str(getattr(model, "name_or_path", "") or type(model).__name__),
        dtype="bf16" if dtypes == {torch.bfloat16} else "auto",
        quantization="int4" if how.get("quant_method") == "torchao" else kind,  # which codes, its layers say
    )


def _frozen_model(
    source: BackboneSource,
    of_kind: str,
    *,
    precision: Precision,
    attn_implementation: str,
    device: "torch.device | None",
    keeps_layers: bool = False,
) -> "torch.nn.Module":
    """Return a model with every weight from the files, in evaluation mode; see `load_language_model`.

    Args:
        of_kind: Name of an automatic class of transformers.
    """
    name, place = source.name, source_of(source.name)
    check_quantization(source)
    with hub_access(place), quiet_transformers(), quiet_quantizers():
        import torch
        import transformers
        from safetensors import SafetensorError

        try:
            config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=False)
            options: dict[str, Any] = without_pooler(config) if of_kind == "AutoModel" else {}
            if precision == "float64":
                options["experts_implementation"] = "eager"  # the products of experts that are grouped are none of it
            if device is not None and device.type != "cpu":
                options["device_map"] = {"": device}
            model, report = getattr(transformers, of_kind).from_pretrained(
                place,
                attn_implementation=attn_implementation,
                output_loading_info=True,
                use_safetensors=True,
                trust_remote_code=False,
                **loading_options(source, precision),
                **options,
            )
        except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
            _check_layers(source, of_kind)
            raise BackboneError(f"weights of backbone {name} must be readable; {one_line(error)}") from error
    if hasattr(model, "peft_config") or model.name_or_path != place:
        raise BackboneError(
            f"backbone {name} must be a whole model; it is an adapter of {model.name_or_path}. Merge it first."
        )
    # what its module computes, as positions, need not be in the files
    owners = {name: model.get_submodule(name.rpartition(".")[0]) for name in report["missing_keys"]}
    missing = sorted(name for name, owner in owners.items() if not hasattr(owner, "create_weight"))
    if missing:
        raise BackboneError(
            f"weights of backbone {name} must be complete; {len(missing)} are missing, such as {missing[0]}."
        )
    model_of_any_kind: torch.nn.Module = model
    if source.quantization != "none" and not keeps_layers:
        from trial_runner.linear_layers import QuantizedLinear, hold_quantized, no_layers

        hold_quantized(model_of_any_kind, keeps=False)
        if not any(isinstance(one, QuantizedLinear) for one in model_of_any_kind.modules()):
            raise no_layers(source.quantization)
        for mark in _MARKS:  # by which transformers knows layers that are not there any more
            vars(model).pop(mark, None)
    if precision == "float64":
        model_of_any_kind.to(torch.float64)
    return model_of_any_kind.requires_grad_(False).eval()


def _check_layers(source: BackboneSource, of_kind: str) -> None:
    """Refuse layers that cannot be quantised, by name; the error of torchao has many lines and comes later."""
    import torch

    from trial_runner.linear_layers import quantize_on_meta

    if source.quantization == "int4":
        model, _ = model_without_weights(source.name, of_kind, "eager")
        quantize_on_meta(model, source.quantization, torch.float32)


def without_pooler(config: Any) -> dict[str, bool]:
    """Return the option that omits the pooler, if the model class has one."""
    from transformers import MODEL_MAPPING

    parameters = inspect.signature(MODEL_MAPPING[type(config)].__init__).parameters
    return {"add_pooling_layer": False} if "add_pooling_layer" in parameters else {}
