"""Trainable modules of one configuration, and their edits at each sublayer."""

from collections.abc import Hashable, Iterator

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.parameter_counts.counts import count, count_edits, widths
from trial_runner.deltas import DELTAS, FormDelta, SharedDelta
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.form_delta import FormPlace
from trial_runner.deltas.frozen_matrix import Frozen, frozen_matrix
from trial_runner.deltas.gates import GATE_DELTAS
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.prompt import PromptDelta
from trial_runner.deltas.whole_model.whole_delta import FrozenWeights, WholeModelDelta
from trial_runner.errors import AttachError

Named = Iterator[tuple[str, nn.Module]]


class DeltaSet(nn.Module):
    """Trainable modules of a configuration on a backbone.

    Args:
        seed: Seed of the initial values, which do not depend on device or precision.
        device: Device of the parameters.
        frozen: Weights of the base model by name; required by forms that are computed from them.

    Attributes:
        sublayers: Edits of each sublayer, in the order of the configuration.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
        AttachError: If the number of built parameters differs from the configuration's count, or ``frozen`` is missing.
    """

    def __init__(
        self,
        configuration: Configuration,
        shape: BackboneShape,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        frozen: Frozen | None = None,
    ) -> None:
        """Build, initialise and count the modules."""
        super().__init__()
        self.configuration = configuration
        self._shape = shape
        self.counts = count(configuration, shape)
        self.sublayers: dict[Sublayer, list[PortDelta]] = {}
        self.attention = nn.ModuleDict()
        self.ffn = nn.ModuleDict()
        self._shared: dict[Hashable, SharedDelta] = {}
        generator = torch.Generator().manual_seed(seed)
        for index, edit in enumerate(configuration.edits):
            side = self.attention if edit.site.is_attention else self.ffn
            for name, module in self._build(index, edit, generator, frozen):
                side[name] = module
        self._check_count()
        self.to(device=device, dtype=dtype)

    @property
    def prompt(self) -> PromptDelta | None:
        """Rows before the embedded input; None without a prompt."""
        return next((module for module in self.ffn.values() if isinstance(module, PromptDelta)), None)

    @property
    def whole(self) -> WholeModelDelta | None:
        """Change of the whole model's weights; None without one."""
        return next((module for module in self.ffn.values() if isinstance(module, WholeModelDelta)), None)

    def _build(self, index: int, edit: Edit, generator: torch.Generator, frozen: Frozen | None) -> Named:
        kind = DELTAS[edit.form.name]
        if issubclass(kind, FormDelta):
            yield from self._build_at_sublayers(kind, index, edit, generator, frozen)
        elif issubclass(kind, WholeModelDelta):
            if frozen is None:
                raise AttachError(f"a change of the whole model needs its parameters; {edit.form.name} got none.")
            numbers = {name: one for name, one in frozen.items() if isinstance(one, Tensor)}
            if len(numbers) < len(frozen):
                raise AttachError(
                    f"weights that are changed themselves must not be quantised; {edit.form.name} changes those of a "
                    "backbone in codes. Take backbone.quantization: none, or another form."
                )
            yield f"{index}_whole", kind(edit.form, FrozenWeights(numbers), generator)
        else:
            yield f"{index}_prompt", PromptDelta(edit.form, self._shape.width, generator)

    def _build_at_sublayers(
        self, kind: type[FormDelta], index: int, edit: Edit, generator: torch.Generator, frozen: Frozen | None
    ) -> Named:
        shape = self._shape
        sublayers = _sublayers(edit, shape)
        sharing = kind.shares(edit.form)
        for sublayer, width in sublayers.items():
            layers = [other.layer for other in sublayers if other.site is sublayer.site]
            shared: SharedDelta | None = None
            if sharing is not None:
                key = (sharing, index, sublayer.site) if sharing.is_of_one_site else (sharing, sharing.key(edit, shape))
                if key not in self._shared:
                    self._shared[key] = sharing.build(edit, len(layers), shape, generator)
                    of_site = f"_{sublayer.site}" if sharing.is_of_one_site else ""
                    yield f"{index}_{sharing.label}{of_site}", self._shared[key]
                shared = self._shared[key]
            place = FormPlace(
                blocks=blocks_of(edit, shape),
                width=width,
                shared=shared,
                index=layers.index(sublayer.layer),
                weight=frozen_matrix(frozen, shape, sublayer, edit) if edit.form.needs_weights else None,
            )
            delta = GATE_DELTAS[edit.gate.name](edit, kind(edit, place, generator), shape, generator)
            self.sublayers.setdefault(sublayer, []).append(delta)
            yield f"{index}_{edit.form.name}_{sublayer.site}_{_stack_mark(sublayer, shape)}{sublayer.layer}", delta

    def _check_count(self) -> None:
        attached = sum(parameter.numel() for parameter in self.parameters())
        if attached == self.counts.trained:
            return
        where = "no single edit"
        for index, edit in enumerate(self.configuration.edits):
            prefix = f"{index}_"
            named = self.named_parameters()
            mine = sum(parameter.numel() for name, parameter in named if name.split(".")[1].startswith(prefix))
            if mine != count_edits((edit,), self._shape).trained:
                where = f"edit {index} ({edit.form.name} at {edit.site} {edit.write})"
                break
        raise AttachError(
            f"attached {attached:,} parameters but the configuration counts {self.counts.trained:,}; the difference "
            f"sits at {where}. This is a bug in trial_runner/deltas or search_space/parameter_counts/counts.py."
        )


def _sublayers(edit: Edit, shape: BackboneShape) -> dict[Sublayer, int]:
    if edit.site is not Site.STACK:
        return widths(edit, shape)
    return {Sublayer(site=Site.STACK, stack="stack", layer=index): 0 for index in range(shape.stack_norms)}


def _stack_mark(sublayer: Sublayer, shape: BackboneShape) -> str:
    """Return a prefix that separates the FFNs of the two stacks of an encoder-decoder."""
    both = shape.encoder_layers and shape.decoder_layers and sublayer.site is Site.FFN
    return f"{sublayer.stack}_" if both else ""
