"""Outputs of edits at the ports of every family, against closed forms in float64."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.edits import edit
from support.tiny_backbones import EVERY_DENSE_FAMILY, exact_attention, in_turn, rigs_of
from torch import Tensor, nn
from torch.nn import functional

from search_space.backbones import PortLocation
from search_space.backbones.shape import Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, NormPlacement, Port, Positions, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, OwnNorm
from search_space.gates import Add, FixedScale, LearnedScale
from search_space.rules import READABLE_PORTS
from trial_runner.backbones import load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.port_discovery.edit_properties import build, moved
from trial_runner.port_discovery.rig import Rig

Seen = dict[tuple[str, str], Tensor]

INPUTS = {
    Port.Q: Port.X_ATTN,
    Port.K: Port.CTX,
    Port.V: Port.CTX,
    Port.O: Port.CONCAT,
    Port.G: Port.X_FFN,
    Port.U: Port.X_FFN,
    Port.F: Port.M,
}
"""The ports that a frozen linear map writes, and what it reads."""


@pytest.fixture(scope="module", params=in_turn(*EVERY_DENSE_FAMILY))
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone(request.param))


def deltas_of(rig: Rig, *edits: Edit) -> DeltaSet:
    return moved(build(rig, Configuration(edits=edits)))


def location_of(rig: Rig, sublayer: Sublayer, port: Port) -> PortLocation:
    ports = rig.backbone.family.ports
    assert ports is not None
    return ports(rig.backbone.shape).ports[sublayer.stack, sublayer.site, port]


def module_at(rig: Rig, model: nn.Module, sublayer: Sublayer, port: Port) -> nn.Module:
    ports = rig.backbone.family.ports
    assert ports is not None
    block = ports(rig.backbone.shape).layers[sublayer.stack].format(layer=sublayer.layer)
    return model.get_submodule(".".join(filter(None, (block, location_of(rig, sublayer, port).module))))


def plain_outputs(rig: Rig, model: nn.Module) -> Tensor:
    with torch.no_grad():
        return rig.outputs_of(model(**rig.inputs).last_hidden_state, rig.inputs)


def plain_model(rig: Rig) -> nn.Module:
    attention = exact_attention(rig.backbone.family.name)
    return load_backbone(rig.backbone.name, precision="float64", attn_implementation=attention).model


def test_inactive_attachment_equals_plain_transformers(rig):
    torch.testing.assert_close(rig.frozen, plain_outputs(rig, plain_model(rig)), rtol=0, atol=1e-12)
    assert torch.equal(rig.outputs(), rig.frozen)


def activations_with(rig: Rig, deltas: DeltaSet) -> dict[Sublayer, Callable[[Port], Tensor]]:
    """Return the activations at the ports of the model's first blocks with active deltas, by sublayer."""
    shape = rig.backbone.shape
    sublayers = [one for site in (Site.ATTENTION, Site.FFN) for one in shape.sublayers(site) if one.layer == 0]
    activations: Seen = {}
    handles = []
    for module in {module_at(rig, rig.backbone.model, one, port) for one in sublayers for port in ports_of(rig, one)}:

        def keep(module: nn.Module, arguments: tuple[Tensor, ...], out: Tensor | tuple[Tensor, ...]) -> None:
            if (str(id(module)), "input") in activations:
                return  # projections of DeBERTa read positions after the tokens
            activations[str(id(module)), "input"] = arguments[0] if arguments else torch.empty(0)
            activations[str(id(module)), "output"] = out[0] if isinstance(out, tuple) else out

        handles.append(module.register_forward_hook(keep))
    with torch.no_grad():
        rig.outputs(deltas)
    for handle in handles:
        handle.remove()

    def at(sublayer: Sublayer, port: Port) -> Tensor:
        location = location_of(rig, sublayer, port)
        module = module_at(rig, rig.backbone.model, sublayer, port)
        whole = activations[str(id(module)), location.side]
        return whole[..., location.columns(whole.shape[-1])]

    return {one: (lambda port, one=one: at(one, port)) for one in sublayers}


def ports_of(rig: Rig, sublayer: Sublayer) -> list[Port]:
    ports = rig.backbone.family.ports
    assert ports is not None
    table = ports(rig.backbone.shape).ports
    return [port for stack, site, port in table if (stack, site) == (sublayer.stack, sublayer.site)]


def frozen_map(rig: Rig, sublayer: Sublayer, port: Port, given: Tensor) -> Tensor:
    """Compute the frozen map into a port without the hooks."""
    location = location_of(rig, sublayer, port)
    out: Tensor = module_at(rig, rig.backbone.model, sublayer, port).forward(given)
    return out[..., location.columns(out.shape[-1])]


@pytest.mark.parametrize("gate", [Add(), FixedScale(value=3.0), LearnedScale()], ids=lambda gate: gate.name)
@pytest.mark.parametrize("write", [Port.Q, Port.V, Port.O, Port.U, Port.F], ids=str)
def test_an_adapter_computes_its_formula(rig, write, gate):
    """Test ``h <- h + s (silu(LN(z) W_down + b_down) W_up + b_up)``, where z is the port that is read, or h itself."""
    form = Bottleneck(width=3, activation=Activation.SILU, norm=OwnNorm.INPUT)
    for read in [port for port in READABLE_PORTS[write] if port is not Port.HEAD]:
        deltas = deltas_of(rig, edit(write, read, form, gate))
        activations = activations_with(rig, deltas)
        for sublayer, at in activations.items():
            if sublayer not in deltas.sublayers:
                continue
            (delta,) = deltas.sublayers[sublayer]
            h = frozen_map(rig, sublayer, write, at(INPUTS[write]))
            z, own = h if read is write else at(read), delta.form
            z = functional.layer_norm(z, z.shape[-1:], own.norm.weight, own.norm.bias)
            out = functional.silu(z @ own.down + own.down_bias) @ own.up + own.up_bias
            scale = {"add": 1.0, "scale": 3.0, "scale_learned": getattr(delta, "scale", None)}[gate.name]
            torch.testing.assert_close(at(write), h + scale * out, rtol=1e-12, atol=1e-11)


def test_an_adapter_after_the_sum_reads_it_as_its_block_passes_it_on(rig):
    """``sum <- sum + A(sum)``; on post-LN backbones the adapter reads LN(sum) (He et al. 2022, Pfeiffer adapter)."""
    deltas = deltas_of(rig, edit(Port.SUM, Port.SUM, Bottleneck(width=3, activation=Activation.TANH)))
    is_post = rig.backbone.shape.norm is NormPlacement.POST
    for sublayer, at in activations_with(rig, deltas).items():
        if sublayer.site is not Site.FFN:
            continue
        h = at(Port.RES_F) + ffn_contribution(rig, sublayer, at(Port.F))
        norm = module_at(rig, rig.backbone.model, sublayer, Port.NORM)
        z = norm.forward(h) if is_post else h
        own = deltas.sublayers[sublayer][0].form
        out = torch.tanh(z @ own.down + own.down_bias) @ own.up + own.up_bias
        torch.testing.assert_close(at(Port.SUM), h + out, rtol=1e-12, atol=1e-11)


def ffn_contribution(rig: Rig, sublayer: Sublayer, f: Tensor) -> Tensor:
    """Return the contribution of an FFN's output to the residual stream, after the norm or factor of some families."""
    block = module_at(rig, rig.backbone.model, replace(sublayer, site=Site.FFN), Port.SUM)
    behind = getattr(block, "post_feedforward_layernorm", nn.Identity())
    added: Tensor = behind.forward(f) * getattr(block, "residual_multiplier", 1.0)
    return added


@pytest.mark.parametrize("read", READABLE_PORTS[Port.HEAD], ids=str)
def test_a_multi_head_adapter_computes_its_formula(rig, read):
    """``head_i <- head_i + relu(z_i W_down_i) W_up_i``; z_i is q_i as attention scales it, all of x_attn, or head_i."""
    shape = rig.backbone.shape
    of = edit(Port.HEAD, read, Bottleneck(width=3, heads=Heads.QUERY, bias=False))
    untouched, deltas = build(rig, Configuration(edits=(of,))), deltas_of(rig, of)
    base = activations_with(rig, untouched)  # what starts at zero leaves the heads as they are
    checked = 0
    for sublayer, at in activations_with(rig, deltas).items():
        if sublayer.site not in (Site.ENCODER_SELF, Site.DECODER_SELF) or sublayer.stack != _first_stack(rig):
            continue  # what comes later does not see the same inputs
        scaling = scaling_at(rig, sublayer)
        heads = base[sublayer](Port.CONCAT).unflatten(-1, (shape.query_heads, -1))  # (B, T, H, d_h)
        z = {
            Port.Q: at(Port.Q).unflatten(-1, (shape.query_heads, -1)) * scaling,
            Port.X_ATTN: at(Port.X_ATTN)[:, :, None].expand(-1, -1, shape.query_heads, -1),
            Port.HEAD: heads,
        }[read]
        own = deltas.sublayers[sublayer][0].form
        hidden = torch.relu(torch.einsum("bthi,hir->bthr", z, own.down))
        expected = heads + torch.einsum("bthr,hro->btho", hidden, own.up)
        torch.testing.assert_close(at(Port.CONCAT), expected.flatten(-2), rtol=0, atol=1e-11)
        checked += 1
    assert checked == 1


def scaling_at(rig: Rig, sublayer: Sublayer) -> float:
    """Return the factor of a family's attention logits."""
    shape = rig.backbone.shape
    if shape.positions is Positions.RELATIVE:  # in three ways contents and positions meet; rounded as transformers does
        return 1 / float(torch.tensor(3.0 * shape.head_width).sqrt())
    table = rig.backbone.family.ports(shape)
    block = rig.backbone.model.get_submodule(table.layers[sublayer.stack].format(layer=sublayer.layer))
    module = block.get_submodule(table.attention_modules[sublayer.site])
    scaling: float = getattr(module, "scaling", 1.0 if shape.family == "t5" else shape.head_width**-0.5)
    return scaling


def _first_stack(rig: Rig) -> str:
    return "encoder" if rig.backbone.shape.encoder_layers else "decoder"


def test_parallel_edits_of_a_port_are_summed_and_sequential_ones_follow(rig):
    reads = (Port.F, Port.X_FFN, Port.M)  # the sequential one stands first in the list
    edits = [edit(Port.F, read, LowRank(width=1 + index)) for index, read in enumerate(reads)]
    deltas = deltas_of(rig, *edits)
    for sublayer, at in activations_with(rig, deltas).items():
        if sublayer.site is not Site.FFN:
            continue
        product = {delta.edit.read: delta.form.a @ delta.form.b for delta in deltas.sublayers[sublayer]}
        h = frozen_map(rig, sublayer, Port.F, at(Port.M))
        h = h + at(Port.X_FFN) @ product[Port.X_FFN] + at(Port.M) @ product[Port.M]
        torch.testing.assert_close(at(Port.F), h + h @ product[Port.F], rtol=1e-12, atol=1e-11)
