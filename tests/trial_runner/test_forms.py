"""The conformance suite of edits: every (form, write, read, gate) of the space on every trainable family."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import count
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.families import FAMILIES
from search_space.form import FORMS, Bottleneck, Constant, Init, LowRank, SoftmaxMemory
from search_space.gate import GATES, Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.options import Leaf, side_leaves
from search_space.published import PUBLISHED
from search_space.validity import READS
from trial_runner.attach import Attachment, DeltaSet
from trial_runner.attention import ATTENTION, register_attention
from trial_runner.backbones import Backbone, load_backbone

TRAINABLE = tuple(family.name for family in FAMILIES if family.ports is not None)
FORM_NAMES = tuple(form.name for form in FORMS)
GATE_NAMES = tuple(gate.name for gate in GATES)

INPUT_IDS = torch.randint(5, 200, (3, 12), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(12) < torch.tensor([[12], [9], [4]])


@pytest.fixture(scope="module", params=TRAINABLE)
def backbone(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Backbone:
    register_attention()
    return load_backbone(str(tiny_backbone(request.param)), precision="float64", attn_implementation=ATTENTION)


@pytest.fixture
def attachment(backbone: Backbone) -> Iterator[Attachment]:
    attachment = Attachment(backbone.model, backbone.family, backbone.shape)
    yield attachment
    attachment.detach()


def run(backbone: Backbone) -> torch.Tensor:
    hidden: torch.Tensor = backbone.model(input_ids=INPUT_IDS, attention_mask=MASK).last_hidden_state
    return hidden[MASK]


def leaves(shape: BackboneShape) -> Iterator[tuple[Leaf, str]]:
    for side in ("attention", "ffn"):
        for leaf in side_leaves(side, FORM_NAMES, shape):
            for gate in leaf.gates(GATE_NAMES):
                yield leaf, gate


def configurations(shape: BackboneShape) -> Iterator[Configuration]:
    for leaf, gate in leaves(shape):
        activations = tuple(Activation) if leaf.form == Bottleneck.name else (Activation.RELU,)
        for activation in activations:
            edits = leaf.edits(activation=activation, gate=gate, scale=2.0)
            yield Configuration(edits=edits).resized(attention=(3, 1), ffn=(3, 1))
    for method in PUBLISHED:
        sizes = {parameter.name: 3 for parameter in method.hyperparameters if parameter.is_whole}
        if sizes.pop("reparameterization_width", None):
            yield method.configuration(shape, sizes | {"reparameterization_width": 5})
        yield method.configuration(shape, sizes)


def disturbed(deltas: DeltaSet) -> DeltaSet:
    """The same deltas with every parameter moved, so that no zero hides a wrong path."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in deltas.parameters():
            deviation = 0.3 if parameter.dim() > 1 else 0.03  # larger biases would switch ReLU units off
            parameter += deviation * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return deltas


def starts_as_nothing(configuration: Configuration) -> bool:
    return all(
        isinstance(edit.form, Constant | LowRank) or (isinstance(edit.form, Bottleneck) and edit.form.init is Init.LORA)
        for edit in configuration.edits
    )


def test_every_edit_counts_starts_learns_and_leaves_no_trace(backbone: Backbone, attachment: Attachment) -> None:
    frozen = run(backbone)
    weights = {name: tensor.clone() for name, tensor in backbone.model.state_dict().items()}
    seen = 0
    for configuration in configurations(backbone.shape):
        deltas = DeltaSet(configuration, backbone.shape, seed=3, dtype=torch.float64)
        attached = sum(parameter.numel() for parameter in deltas.parameters())
        assert attached == count(configuration, backbone.shape).trained
        with torch.no_grad(), attachment.using(deltas):
            at_start = run(backbone)
        assert torch.equal(at_start, frozen) == starts_as_nothing(configuration), configuration
        with attachment.using(disturbed(deltas)):
            moved = run(backbone)
        assert torch.allclose(moved, frozen, atol=1e-9) == (not configuration.edits), configuration
        # a random direction: the sum of a normalised output would have no gradient
        direction = torch.randn(moved.shape, generator=torch.Generator().manual_seed(2), dtype=moved.dtype)
        if configuration.edits:
            (moved * direction).sum().backward()
        for name, parameter in deltas.named_parameters():
            assert parameter.grad is not None, (configuration, name)
            inert = _is_inert(configuration, name)
            assert bool(parameter.grad.abs().max() > 1e-12) != inert, (configuration, name)
        seen += 1
        assert torch.equal(run(backbone), frozen)
    assert seen > 100
    attachment.detach()
    assert torch.equal(run(backbone), frozen)
    for name, tensor in backbone.model.state_dict().items():
        assert torch.equal(tensor, weights[name]), name


def _is_inert(configuration: Configuration, name: str) -> bool:
    """V12: with absolute positions and no prefix, a constant at k moves every logit of a query alike."""
    index = int(name.split(".")[1].split("_")[0])
    edit = configuration.edits[index] if "stack" not in name.split(".")[1] else None
    return edit is not None and edit.write is Port.K and isinstance(edit.form, Constant)


def test_an_inactive_attachment_computes_what_plain_transformers_does(
    backbone: Backbone, attachment: Attachment
) -> None:
    reference = load_backbone(backbone.name, precision="float64", attn_implementation="eager")
    torch.testing.assert_close(run(backbone), run(reference), rtol=0, atol=1e-12)


def test_initial_values_depend_on_the_seed_alone(backbone: Backbone) -> None:
    configuration = next(method for method in PUBLISHED if method.name == "mam_adapter").configuration(
        backbone.shape, {"l": 2, "r": 2}
    )

    def drawn(seed: int) -> list[torch.Tensor]:
        return [p.detach() for p in DeltaSet(configuration, backbone.shape, seed=seed).parameters()]

    assert all(torch.equal(one, other) for one, other in zip(drawn(1), drawn(1), strict=True))
    assert not all(torch.equal(one, other) for one, other in zip(drawn(1), drawn(2), strict=True))


def _edit(write: Port, read: Port | None, form: object) -> Configuration:
    site = Site.FFN if write in (Port.U, Port.F) else Site.ATTENTION
    return Configuration(edits=(Edit(site=site, write=write, read=read, form=form, gate=Add()),))  # type: ignore[arg-type]


PROJECTIONS = {
    Port.Q: ("attention.self.query", Port.X_ATTN),
    Port.K: ("attention.self.key", Port.CTX),
    Port.V: ("attention.self.value", Port.CTX),
    Port.O: ("attention.output.dense", Port.CONCAT),
    Port.U: ("intermediate.dense", Port.X_FFN),
    Port.F: ("output.dense", Port.M),
}


def _merged_output(backbone: Backbone, change: Callable[[int], tuple[str, torch.Tensor]]) -> torch.Tensor:
    """Outputs of a plain copy whose parameters were changed by layer."""
    plain = load_backbone(backbone.name, precision="float64", attn_implementation="eager")
    parameters = dict(plain.model.named_parameters())
    with torch.no_grad():
        for layer in range(backbone.shape.encoder_layers):
            path, delta = change(layer)
            parameters[f"encoder.layer.{layer}.{path}"] += delta
    return run(plain)


@pytest.mark.parametrize("port", PROJECTIONS, ids=str)
def test_lora_equals_its_merged_weights(backbone: Backbone, attachment: Attachment, port: Port) -> None:
    path, read = PROJECTIONS[port]
    deltas = disturbed(
        DeltaSet(_edit(port, read, LowRank(width=2, widened=1)), backbone.shape, seed=0, dtype=torch.float64)
    )
    modules = list((deltas.ffn if port in (Port.U, Port.F) else deltas.attention).values())

    def change(layer: int) -> tuple[str, torch.Tensor]:
        form = modules[layer].form
        return f"{path}.weight", (form.a @ form.b).T.detach()  # transformers stores (out, in)

    with attachment.using(deltas):
        torch.testing.assert_close(run(backbone), _merged_output(backbone, change), rtol=0, atol=1e-12)


@pytest.mark.parametrize("port", PROJECTIONS, ids=str)
def test_a_constant_equals_a_changed_bias(backbone: Backbone, attachment: Attachment, port: Port) -> None:
    path, _ = PROJECTIONS[port]
    deltas = disturbed(DeltaSet(_edit(port, None, Constant()), backbone.shape, seed=0, dtype=torch.float64))
    modules = list((deltas.ffn if port in (Port.U, Port.F) else deltas.attention).values())
    with attachment.using(deltas):
        edited = run(backbone)
    merged = _merged_output(backbone, lambda layer: (f"{path}.bias", modules[layer].form.bias.detach()))
    torch.testing.assert_close(edited, merged, rtol=0, atol=1e-12)
    frozen = run(backbone)
    assert torch.allclose(edited, frozen, atol=1e-12) == (port is Port.K), "V12: only a constant at k is inert"


def test_sequential_low_rank_at_q_equals_lora_through_the_projection(
    backbone: Backbone, attachment: Attachment
) -> None:
    """V7: ``h A B`` with ``h = x W + b`` is LoRA with ``A' = W A`` and a constant ``b A B``."""
    deltas = disturbed(DeltaSet(_edit(Port.Q, Port.Q, LowRank(width=2)), backbone.shape, seed=0, dtype=torch.float64))
    modules = list(deltas.attention.values())
    plain = load_backbone(backbone.name, precision="float64", attn_implementation="eager")
    with torch.no_grad():
        for layer, module in enumerate(modules):
            query = plain.model.get_submodule(f"encoder.layer.{layer}.attention.self.query")
            product = (module.form.a @ module.form.b).T
            query.weight += product @ query.weight
            query.bias += product @ query.bias
    with attachment.using(deltas):
        torch.testing.assert_close(run(backbone), run(plain), rtol=0, atol=1e-12)


def test_a_prefix_with_the_wrong_gate_is_another_function(backbone: Backbone, attachment: Attachment) -> None:
    """Negative control: leaving the gate away must show."""
    form = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE)
    outputs = []
    for gate in (ConvexGate(), Add()):
        edit = Edit(site=Site.ATTENTION, write=Port.HEAD, read=Port.Q, form=form, gate=gate)
        deltas = DeltaSet(Configuration(edits=(edit,)), backbone.shape, seed=0, dtype=torch.float64)
        with torch.no_grad(), attachment.using(disturbed(deltas)):
            outputs.append(run(backbone))
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


def _seen_in_layer_0(backbone: Backbone) -> dict[str, torch.Tensor]:
    """Inputs and outputs of the frozen modules of layer 0 as the model sees them, with the deltas at work."""
    seen: dict[str, torch.Tensor] = {}
    handles = []
    for path in (*(path for path, _ in PROJECTIONS.values()), "attention.output.LayerNorm"):
        module = backbone.model.get_submodule(f"encoder.layer.0.{path}")

        def keep(module: torch.nn.Module, arguments: tuple[torch.Tensor], out: torch.Tensor, path: str = path) -> None:
            seen[f"{path}:in"], seen[f"{path}:out"] = arguments[0], out

        handles.append(module.register_forward_hook(keep))
    run(backbone)
    for handle in handles:
        handle.remove()
    return seen


INPUT_OF = {
    Port.X_ATTN: "attention.self.query:in",
    Port.Q: "attention.self.query:out",
    Port.CONCAT: "attention.output.dense:in",
    Port.X_FFN: "intermediate.dense:in",
    Port.M: "output.dense:in",
}


@pytest.mark.parametrize("gate", [Add(), FixedScale(value=3.0), LearnedScale()], ids=lambda gate: gate.name)
@pytest.mark.parametrize(
    ("write", "read"),
    [
        (write, read)
        for write in (Port.Q, Port.O, Port.U, Port.F)
        for read in READS[write]
        if read in (*INPUT_OF, write)
    ],
    ids=str,
)
def test_an_adapter_computes_its_formula(
    backbone: Backbone, attachment: Attachment, write: Port, read: Port, gate: Gate
) -> None:
    """``h <- h + s (silu(LN(z) W_down + b_down) W_up + b_up)`` with z = what is read, or h itself."""
    site = Site.FFN if write in (Port.U, Port.F) else Site.ATTENTION
    form = Bottleneck(width=3, activation=Activation.SILU, norm=True)
    configuration = Configuration(edits=(Edit(site=site, write=write, read=read, form=form, gate=gate),))
    deltas = disturbed(DeltaSet(configuration, backbone.shape, seed=0, dtype=torch.float64))
    with torch.no_grad(), attachment.using(deltas):
        seen = _seen_in_layer_0(backbone)
    path = PROJECTIONS[write][0]
    module = backbone.model.get_submodule(f"encoder.layer.0.{path}")
    h = torch.nn.functional.linear(seen[f"{path}:in"], module.weight, module.bias)
    z = h if read is write else seen[INPUT_OF[read]]
    delta = next(iter((deltas.ffn if site is Site.FFN else deltas.attention).values()))
    own = delta.form
    z = torch.nn.functional.layer_norm(z, z.shape[-1:], own.norm.weight, own.norm.bias)
    out = torch.nn.functional.silu(z @ own.down + own.down_bias) @ own.up + own.up_bias
    scale = {"add": 1.0, "scale": 3.0, "scale_learned": delta.scale}[gate.name]
    torch.testing.assert_close(seen[f"{path}:out"], h + scale * out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("read", READS[Port.HEAD], ids=str)
def test_a_multi_head_adapter_computes_its_formula(backbone: Backbone, attachment: Attachment, read: Port) -> None:
    """``head_i <- head_i + relu(z_i W_down_i) W_up_i``; z_i is q_i / sqrt(d_h), the whole x_attn, or head_i."""
    form = Bottleneck(width=3, heads=Heads.QUERY, bias=False)
    edit = Edit(site=Site.ATTENTION, write=Port.HEAD, read=read, form=form, gate=Add())
    deltas = disturbed(DeltaSet(Configuration(edits=(edit,)), backbone.shape, seed=0, dtype=torch.float64))
    with torch.no_grad(), attachment.using(deltas):
        seen = _seen_in_layer_0(backbone)
    heads, width = backbone.shape.query_heads, backbone.shape.head_width

    def split(port: str) -> torch.Tensor:
        return seen[f"attention.self.{port}:out"].unflatten(-1, (heads, width)).transpose(1, 2)

    base = torch.nn.functional.scaled_dot_product_attention(
        split("query"), split("key"), split("value"), attn_mask=MASK[:, None, None]
    )
    own = next(iter(deltas.attention.values())).form
    z = {
        Port.Q: split("query") / width**0.5,
        Port.X_ATTN: seen["attention.self.query:in"][:, None].expand(-1, heads, -1, -1),
        Port.HEAD: base,
    }[read]
    expected = base + torch.relu(z @ own.down) @ own.up  # (B, H, T, d_h)
    torch.testing.assert_close(
        seen["attention.output.dense:in"], expected.transpose(1, 2).flatten(-2), rtol=0, atol=1e-12
    )


def test_parallel_edits_of_a_port_are_summed_and_sequential_ones_follow(
    backbone: Backbone, attachment: Attachment
) -> None:
    forms = (LowRank(width=1), LowRank(width=2), LowRank(width=3))
    reads = (Port.F, Port.X_FFN, Port.M)  # the sequential one stands first in the list
    edits = tuple(
        Edit(site=Site.FFN, write=Port.F, read=read, form=form, gate=Add())
        for read, form in zip(reads, forms, strict=True)
    )
    deltas = disturbed(DeltaSet(Configuration(edits=edits), backbone.shape, seed=0, dtype=torch.float64))
    with torch.no_grad(), attachment.using(deltas):
        seen = _seen_in_layer_0(backbone)
    products = {
        module.edit.read: module.form.a @ module.form.b for name, module in deltas.ffn.items() if name.endswith("_0")
    }
    module = backbone.model.get_submodule("encoder.layer.0.output.dense")
    h = torch.nn.functional.linear(seen["output.dense:in"], module.weight, module.bias)
    h = h + seen["intermediate.dense:in"] @ products[Port.X_FFN] + seen["output.dense:in"] @ products[Port.M]
    h = h + h @ products[Port.F]
    torch.testing.assert_close(seen["output.dense:out"], h, rtol=0, atol=1e-12)
