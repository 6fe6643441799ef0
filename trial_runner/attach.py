"""Deltas on a frozen backbone: building them, joining them to its ports, and leaving no trace.

`DeltaSet` holds the trainable modules of one configuration. `Attachment` puts hooks on a backbone once; which delta
set they apply is switched per forward pass, so that many trials can share the backbone. Without an active set every
hook passes its tensor on untouched.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from search_space.backbone_shape import BackboneShape, Sublayer
from search_space.configuration import Configuration
from search_space.counting import count, count_edits, widths
from search_space.dimensions import Insertion, Port, Site
from search_space.edit import Edit
from search_space.families import Family, PortLocation, PortTable
from search_space.form import SoftmaxMemory
from search_space.gate import ConvexGate, FixedScale, LearnedScale
from trial_runner.attention import tap_attention, untap_attention
from trial_runner.deltas import FormDelta, blocks_of, build_form
from trial_runner.deltas.softmax_memory import PrefixStack, SoftmaxMemoryDelta, StackedPrefix
from trial_runner.errors import AttachError

__all__ = ["Attachment", "DeltaSet", "PortDelta"]


class PortDelta(nn.Module):
    """One edit at one sublayer: its form's module and its gate."""

    def __init__(self, edit: Edit, form: FormDelta | StackedPrefix) -> None:
        """Join a form's module with the edit's gate; a learned scale starts at 1."""
        super().__init__()
        self.edit = edit
        self.form = form
        is_learned = isinstance(edit.gate, LearnedScale)
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64)) if is_learned else None

    def forward(self, z: Tensor | None) -> Tensor:
        """The edit's contribution, to be added to the port it writes."""
        delta: Tensor = self.form(z)
        if self.scale is not None:
            return delta * self.scale.to(delta.dtype)
        return delta * self.edit.gate.value if isinstance(self.edit.gate, FixedScale) else delta


@dataclass(slots=True)
class _SublayerPlan:
    """What the active delta set does at one sublayer."""

    parallel: dict[Port, list[PortDelta]] = field(default_factory=dict)
    sequential: dict[Port, list[PortDelta]] = field(default_factory=dict)
    reads: set[Port] = field(default_factory=set)
    prefix: SoftmaxMemoryDelta | StackedPrefix | None = None

    def add(self, delta: PortDelta) -> None:
        edit = delta.edit
        if isinstance(edit.gate, ConvexGate):
            if not isinstance(delta.form, SoftmaxMemoryDelta | StackedPrefix):
                raise AttachError(f"the convex gate needs a softmax memory; got {edit.form.name}.")
            self.prefix = delta.form
            return
        side = self.sequential if edit.insertion is Insertion.SEQUENTIAL else self.parallel
        side.setdefault(edit.write, []).append(delta)
        if edit.read is not None and edit.insertion is Insertion.PARALLEL:
            self.reads.add(edit.read)

    def apply(self, port: Port, h: Tensor, values: dict[Port, Tensor]) -> Tensor:
        """Parallel edits of a port from what they read, summed; then the sequential ones in order."""
        for delta in self.parallel.get(port, ()):
            if delta.edit.read is not None:
                h = h + delta(values[delta.edit.read]).to(h.dtype)
        for delta in self.sequential.get(port, ()):
            h = h + delta(h).to(h.dtype)
        return h

    def touches(self, port: Port) -> bool:
        return port in self.parallel or port in self.sequential


def _sublayers(edit: Edit, shape: BackboneShape) -> dict[Sublayer, int]:
    if edit.site is not Site.STACK:
        return widths(edit, shape)
    return {Sublayer(site=Site.STACK, stack="stack", layer=index): 0 for index in range(shape.stack_norms)}


class DeltaSet(nn.Module):
    """The trainable modules of a configuration on a backbone.

    Args:
        configuration: What to build.
        shape: The backbone.
        seed: Of the initial values, which do not depend on device or precision.
        device: Where the parameters live.
        dtype: Of the parameters.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
        AttachError: If the built parameters are not as many as the configuration counts.
    """

    def __init__(
        self,
        configuration: Configuration,
        shape: BackboneShape,
        *,
        seed: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Build, initialise and count."""
        super().__init__()
        self.configuration = configuration
        self.counts = count(configuration, shape)
        self.plans: dict[Sublayer, _SublayerPlan] = {}
        self.attention = nn.ModuleDict()
        self.ffn = nn.ModuleDict()
        generator = torch.Generator().manual_seed(seed)
        for index, edit in enumerate(configuration.edits):
            side = self.attention if edit.site.is_attention else self.ffn
            for name, module in self._build(index, edit, shape, generator):
                side[name] = module
        self._check_count(shape)
        self.to(device=device, dtype=dtype)

    def _build(
        self, index: int, edit: Edit, shape: BackboneShape, generator: torch.Generator
    ) -> Iterator[tuple[str, nn.Module]]:
        stacks: dict[Site, PrefixStack] = {}
        for sublayer, width in _sublayers(edit, shape).items():
            name = f"{index}_{edit.form.name}_{sublayer.site}_{sublayer.layer}"
            if isinstance(edit.form, SoftmaxMemory) and edit.form.reparameterization is not None:
                if sublayer.site not in stacks:
                    stacks[sublayer.site] = _prefix_stack(edit.form, sublayer.site, shape, generator)
                    yield f"{index}_stack_{sublayer.site}", stacks[sublayer.site]
                delta = PortDelta(edit, StackedPrefix(stacks[sublayer.site], sublayer.layer, blocks_of(edit, shape)))
            else:
                delta = PortDelta(edit, build_form(edit, width, shape, generator))
            self.plans.setdefault(sublayer, _SublayerPlan()).add(delta)
            yield name, delta

    def _check_count(self, shape: BackboneShape) -> None:
        attached = sum(parameter.numel() for parameter in self.parameters())
        if attached == self.counts.trained:
            return
        where = "no single edit"
        for index, edit in enumerate(self.configuration.edits):
            prefix = f"{index}_"
            named = self.named_parameters()
            mine = sum(parameter.numel() for name, parameter in named if name.split(".")[1].startswith(prefix))
            if mine != count_edits((edit,), shape).trained:
                where = f"edit {index} ({edit.form.name} at {edit.site} {edit.write})"
                break
        raise AttachError(
            f"attached {attached:,} parameters but the configuration counts {self.counts.trained:,}; the difference "
            f"sits at {where}. This is a bug in trial_runner/deltas or search_space/counting.py."
        )


def _prefix_stack(form: SoftmaxMemory, site: Site, shape: BackboneShape, generator: torch.Generator) -> PrefixStack:
    stack = PrefixStack(
        length=form.width,
        width=shape.width,
        hidden=form.reparameterization or 1,
        layers=len(shape.sublayers(site)),
        heads=shape.key_value_heads,
        head_width=shape.head_width,
    )
    stack.reset(generator)
    return stack


class _Tap:
    """The hooks of one sublayer: captures what is read, changes what is written."""

    def __init__(self, attachment: "Attachment", sublayer: Sublayer) -> None:
        self._attachment = attachment
        self._sublayer = sublayer
        self._values: dict[Port, Tensor] = {}

    def _plan(self) -> _SublayerPlan | None:
        active = self._attachment.active
        return None if active is None else active.plans.get(self._sublayer)

    def _pass(self, ports: tuple[Port, ...], tensor: Tensor) -> Tensor:
        plan = self._plan()
        if plan is None:
            return tensor
        for port in ports:
            if plan.touches(port):
                tensor = plan.apply(port, tensor, self._values)
            if port in plan.reads:
                self._values[port] = tensor
        return tensor

    def hook_input(self, module: nn.Module, ports: tuple[Port, ...]) -> "torch.utils.hooks.RemovableHandle":
        def before(_: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (self._pass(ports, arguments[0]), *arguments[1:])

        return module.register_forward_pre_hook(before)

    def hook_output(self, module: nn.Module, ports: tuple[Port, ...]) -> "torch.utils.hooks.RemovableHandle":
        def after(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> Tensor:
            return self._pass(ports, output)

        return module.register_forward_hook(after)

    def prefix(self) -> tuple[Tensor, Tensor] | None:
        """See `AttentionTap`."""
        plan = self._plan()
        return plan.prefix.table() if plan is not None and plan.prefix is not None else None

    def edit_heads(self, heads: Tensor, query: Tensor) -> Tensor:
        """See `AttentionTap`."""
        plan = self._plan()
        if plan is None or not plan.touches(Port.HEAD):
            return heads
        return plan.apply(Port.HEAD, heads, self._values | {Port.Q: query})

    def clear(self) -> None:
        self._values.clear()


class Attachment:
    """Hooks on the ports of a frozen backbone.

    Args:
        model: The base model, loaded with the attention implementation `trial_runner.attention.ATTENTION`.
        family: Where its ports are.
        shape: Its sizes.

    Raises:
        AttachError: If the family has no ports, or the model lacks one of them.
    """

    def __init__(self, model: nn.Module, family: Family, shape: BackboneShape) -> None:
        """Put the hooks on."""
        if family.ports is None:
            raise AttachError(
                f"a backbone must be of a family with ports; got {family.name}, which can only be counted."
            )
        self.active: DeltaSet | None = None
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._tapped: list[nn.Module] = []
        self._taps: list[_Tap] = []
        try:
            self._attach(model, family.ports, shape)
        except AttributeError as error:
            self.detach()
            raise AttachError(f"a {family.name} backbone must have all ports of its family; got: {error}.") from error

    def _attach(self, model: nn.Module, table: PortTable, shape: BackboneShape) -> None:
        for site in (Site.ATTENTION, Site.FFN):
            for sublayer in shape.sublayers(site):
                block = model.get_submodule(table.layers[sublayer.stack].format(layer=sublayer.layer))
                tap = self._new_tap(sublayer)
                for location, ports in _by_location(table, sublayer.site).items():
                    module = block.get_submodule(location.module)
                    hook = tap.hook_input if location.side == "input" else tap.hook_output
                    self._handles.append(hook(module, ports))
                if sublayer.site.is_attention:
                    inner = block.get_submodule(table.attention_modules[sublayer.site])
                    tap_attention(inner, tap)
                    self._tapped.append(inner)
        for index, path in enumerate(table.stack_norms):
            tap = self._new_tap(Sublayer(site=Site.STACK, stack="stack", layer=index))
            self._handles.append(tap.hook_output(model.get_submodule(path), (Port.NORM,)))

    def _new_tap(self, sublayer: Sublayer) -> _Tap:
        tap = _Tap(self, sublayer)
        self._taps.append(tap)
        return tap

    @contextmanager
    def using(self, deltas: DeltaSet) -> Iterator[None]:
        """Apply a delta set to every forward pass within the block."""
        self.active = deltas
        try:
            yield
        finally:
            self.active = None
            for tap in self._taps:
                tap.clear()

    def detach(self) -> None:
        """Take every hook off; the model is as it was before."""
        for handle in self._handles:
            handle.remove()
        for module in self._tapped:
            untap_attention(module)
        self._handles.clear()
        self._tapped.clear()
        self._taps.clear()
        self.active = None


def _by_location(table: PortTable, site: Site) -> dict[PortLocation, tuple[Port, ...]]:
    """Ports of a site by the side of the module they share."""
    found: dict[PortLocation, tuple[Port, ...]] = {}
    for (own_site, port), location in table.ports.items():
        if own_site is site:
            found[location] = (*found.get(location, ()), port)
    return found
