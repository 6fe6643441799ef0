"""Contract of edits, checked on a small copy of a backbone, and the table of ports that satisfies it.

A backbone of a family has the table of its family. For any other one a table is derived from the declarations of its
model and from traced tensors. It contains the ports that satisfy the contract, and nothing else.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from search_space.backbones import FAMILIES, REFUSED, BackboneFamily, family_of
from search_space.backbones.declared import declaration_json
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from search_space.edit import Edit
from search_space.errors import SearchSpaceError, UnsupportedBackboneError
from trial_runner.backbones.backbone import model_without_weights
from trial_runner.backbones.locate import entries_of, source_of
from trial_runner.backbones.tables import is_unknown, keep, proved_entry, refusal
from trial_runner.errors import MODEL_FAULTS, RunnerError
from trial_runner.huggingface import hub_access, one_line, quiet_transformers

if TYPE_CHECKING:
    from trial_runner.port_discovery.small_copy import SmallCopy


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Result of the contract on a small copy of a backbone.

    Attributes:
        backbone: Name of the backbone.
        model_type: Model type in its config.
        table: ``"family"``, or ``"model"`` if it was derived from the model.
        problem: Reason in one line why the backbone cannot be used; None if it can.
        shape: Shape of the backbone itself; None if nothing was found.
        kept: Edits that satisfy the contract, in words.
        broken: Other edits, each with the violated property; their ports are left out.
        lacks: Ports that are left out.
        entry: Entry to add to the config, see `search_space.backbones.declared`; None for a known family.
        seconds: Duration.
    """

    backbone: str
    model_type: str
    table: str
    problem: str | None = None
    shape: BackboneShape | None = None
    kept: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    lacks: tuple[tuple[str, str], ...] = ()
    entry: Mapping[str, Any] | None = None
    seconds: float = 0.0


def ensure_supported(backbone: str) -> None:
    """Ensure that a backbone has a family, or a table that satisfies the contract.

    Raises:
        UnsupportedBackboneError: If neither is possible, with the reason; for a model type that transformers lacks,
            with
            the supported ones.
    """
    entries = entries_of(backbone)
    if is_unknown(entries) and proved_entry(entries) is None:
        from transformers import CONFIG_MAPPING

        if entries.get("model_type") not in CONFIG_MAPPING:
            family_of(entries)
        problem = proof_of(backbone).problem
        if problem is not None:
            raise refusal(str(entries.get("model_type")), problem)


def proof_of(backbone: str) -> Proof:
    """Check the contract on a small copy of a backbone, without the cache; the result is cached.

    Raises:
        BackboneError: If the backbone cannot be found, or transformers cannot build a model of its config.
    """
    began = time.monotonic()
    entries = entries_of(backbone)
    model_type = str(entries.get("model_type"))
    known = next((one for one in FAMILIES.values() if model_type in one.model_types), None)
    proof = Proof(backbone=backbone, model_type=model_type, table="model" if known is None else "family")
    try:
        if model_type in REFUSED:
            raise UnsupportedBackboneError(f"{REFUSED[model_type]}.")
        proof = _proved(proof, known, None if known is None else known.read_shape(entries))
    except MODEL_FAULTS as error:
        said = one_line(error)
        if not isinstance(error, RunnerError | SearchSpaceError):
            fault = f"{type(error).__name__}: {said}"
            said = f"a small copy of it does not compute from tokens as other models do ({fault})"
        proof = replace(proof, problem=said.removesuffix(" Use another backbone.").rstrip("."))
    if known is None:
        keep(entries, {"problem": proof.problem, "entry": proof.entry})
    return replace(proof, seconds=time.monotonic() - began)


def _proved(proof: Proof, known: BackboneFamily | None, shape: BackboneShape | None) -> Proof:
    from transformers import AutoConfig

    from trial_runner.port_discovery.small_copy import SmallCopy

    source = source_of(proof.backbone)
    with hub_access(source), quiet_transformers():
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    if known is None and getattr(config, "is_encoder_decoder", False):
        raise UnsupportedBackboneError(
            "it is an encoder-decoder, and tables are made of encoders and of decoders alone; of encoder-decoders "
            f"there are {', '.join(_encoder_decoders())}"
        )
    copy = SmallCopy.of(config, known)
    shape = shape or _shape_of(proof.backbone, copy, config)
    copy.check_plain()
    broken, kept = copy.check_edits()
    copy.check_packs(kept)
    lacks = _blamed(broken, kept)
    if known is not None and broken:
        edit, reason = next(iter(broken.items()))
        raise UnsupportedBackboneError(f"{_words(edit)}: {reason}")
    dropped_norms = any(site is Site.STACK for site, _ in lacks)
    shape = replace(shape, lacks=shape.lacks | {one for one in lacks if one[0] is not Site.STACK})
    entry = None
    if copy.found is not None:
        table = copy.found.table(shape.query_heads, shape.key_value_heads)
        if dropped_norms:
            shape, table = replace(shape, stack_norms=0), replace(table, stack_norms=())
        entry = declaration_json(shape, table)
    return replace(
        proof,
        shape=shape,
        kept=tuple(map(_words, kept)),
        broken={_words(edit): reason for edit, reason in broken.items()},
        lacks=tuple(sorted((site.value, port.value) for site, port in shape.lacks)),
        entry=entry,
    )


def _shape_of(backbone: str, copy: "SmallCopy", config: Any) -> BackboneShape:
    """Return the shape of a backbone with derived ports, from models without weights."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    from trial_runner.port_discovery.small_copy import shape_of_model

    if copy.found is None:
        raise UnsupportedBackboneError("a family knows the shape.")
    base, _ = model_without_weights(backbone, "AutoModel", "eager")
    whole = base
    if copy.rig.is_decoder and type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        whole, _ = model_without_weights(backbone, "AutoModelForCausalLM", "eager")
    return shape_of_model(str(config.model_type), copy.found, base, whole, config)


def _encoder_decoders() -> list[str]:
    """Return the names of the encoder-decoder families."""
    shapes = {name: one.read_shape({**one.example, "model_type": name}) for name, one in FAMILIES.items()}
    return [name for name, shape in shapes.items() if shape.kind is StackKind.ENCODER_DECODER]


def _words(edit: Edit) -> str:
    read = "" if edit.read is None else f"{edit.read} -> "
    return f"{edit.form.name} {edit.gate.name} {edit.site} {read}{edit.write}"


def _side(edit: Edit) -> Site:
    return Site.ATTENTION if edit.site.is_attention else edit.site


def _ports(edit: Edit) -> set[tuple[Site, Port]]:
    inside = edit.gate.logits is not None or edit.heads.value != "single"
    ports = {edit.write, *({edit.read} - {None}), *({Port.HEAD} if inside else ())}
    return {(_side(edit), port) for port in ports if port is not None}


def _blamed(broken: Mapping[Edit, str], kept: Iterable[Edit]) -> set[tuple[Site, Port]]:
    """Return the ports without which nothing is violated; none of them belongs to an edit that satisfies the contract.

    Raises:
        UnsupportedBackboneError: If there are no such ports.
    """
    good = {port for edit in kept for port in _ports(edit)}
    left, blamed = dict(broken), set[tuple[Site, Port]]()
    while left:
        suspects = [port for edit in left for port in _ports(edit) if port not in good]
        if not suspects:
            edit, reason = next(iter(left.items()))
            raise UnsupportedBackboneError(f"{_words(edit)}: {reason}")
        worst = max(suspects, key=lambda one: (suspects.count(one), one))
        blamed.add(worst)
        left = {edit: reason for edit, reason in left.items() if worst not in _ports(edit)}
    return blamed
