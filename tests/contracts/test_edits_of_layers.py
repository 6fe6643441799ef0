"""Layer choice: an edit acts in the chosen blocks alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_backbones import FEW_BACKBONES, SOME_FAMILIES, parameters, rigs_of
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from search_space.backbones import family_of
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import LowRank
from search_space.gates import Add
from search_space.layers import AllLayers, LayerRange, SpindleGroups
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.port_discovery.edit_properties import build, check_everything, moved
from trial_runner.port_discovery.examples import examples_at
from trial_runner.port_discovery.rig import Rig

FIRST, SECOND = LayerRange(first=0, last=0), LayerRange(first=1, last=1)


@pytest.fixture(scope="module", params=parameters(*SOME_FAMILIES, at_once=FEW_BACKBONES))
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone(request.param))


def edits_at(rig: Rig, layers: LayerRange) -> Iterator[Edit]:
    """Yield one edit of each form and written port, without a second form of the same kind."""
    covered: set[object] = set()
    for site in (Site.ATTENTION, Site.FFN):
        for edit in examples_at(site, rig.backbone.shape):
            key = (edit.form.name, edit.write, edit.gate.name)
            if key not in covered and not getattr(edit.form, "widened", 0):
                covered.add(key)
                yield replace(edit, layers=layers)


def blocks(rig: Rig) -> dict[tuple[str, int], nn.Module]:
    ports = rig.backbone.family.ports
    assert ports is not None
    paths = ports(rig.backbone.shape).layers
    return {
        (stack, layer): rig.backbone.model.get_submodule(path.format(layer=layer))
        for stack, path in paths.items()
        for layer in (0, 1)
    }


@contextmanager
def watched(rig: Rig, replacing: dict[str, Tensor] | None = None) -> Iterator[dict[tuple[str, int], Tensor]]:
    """Record the outputs of all blocks, by stack and layer; those of layer 0 can be replaced."""
    outputs: dict[tuple[str, int], Tensor] = {}
    with ExitStack() as stack:
        for place, block in blocks(rig).items():

            def keep(_: nn.Module, __: Any, output: Any, place: tuple[str, int] = place) -> Any:
                tensor = output[0] if isinstance(output, tuple) else output
                if replacing is not None and place[1] == 0:
                    tensor = replacing[place[0]]
                outputs[place] = tensor
                return (tensor, *output[1:]) if isinstance(output, tuple) else tensor

            handle = block.register_forward_hook(keep)
            stack.callback(handle.remove)
        yield outputs


def outputs_with(rig: Rig, deltas: DeltaSet | None) -> dict[tuple[str, int], Tensor]:
    with torch.no_grad(), watched(rig) as outputs:
        rig.outputs(deltas)
    return outputs


def test_deltas_of_the_second_layer_leave_the_first_one_as_it_is(rig):
    frozen = outputs_with(rig, None)
    number = 0
    for edit in edits_at(rig, SECOND):
        edited = outputs_with(rig, moved(build(rig, Configuration(edits=(edit,)))))
        for stack, layer in frozen:
            if layer == 0 and not (stack == "decoder" and ("encoder", 0) in frozen):
                assert torch.equal(edited[stack, layer], frozen[stack, layer]), edit
        number += 1
    assert number > 15


def test_first_layer_deltas_leave_second_layer_function_unchanged(rig):
    """Test that the frozen second block maps the edited first block's output to that of the edited model."""
    frozen = outputs_with(rig, None)
    for edit in edits_at(rig, FIRST):
        edited = outputs_with(rig, moved(build(rig, Configuration(edits=(edit,)))))
        assert not all(torch.equal(edited[place], frozen[place]) for place in frozen if place[1] == 0), edit
        given = {stack: tensor for (stack, layer), tensor in edited.items() if layer == 0}
        with torch.no_grad(), watched(rig, given) as outputs:
            rig.outputs()
        for place, tensor in outputs.items():
            assert torch.equal(tensor, edited[place]), (edit, place)


def test_edits_of_single_layers_equal_one_of_all_layers(rig):
    """Test an edit at all layers against one at the first and one at the second, with the same numbers."""
    for edit in edits_at(rig, FIRST):
        if getattr(edit.form, "reparameterization", None) is not None:
            continue  # one MLP makes the tables of all layers
        single_layers = Configuration(edits=(edit, replace(edit, layers=SECOND)))
        deltas = moved(build(rig, single_layers))
        whole = build(rig, Configuration(edits=(replace(edit, layers=AllLayers()),)))
        whole.load_state_dict({_in_one(name): tensor for name, tensor in deltas.state_dict().items()})
        with torch.no_grad():
            assert torch.equal(rig.outputs(deltas), rig.outputs(whole)), edit


def _in_one(name: str) -> str:
    side, module, *path = name.split(".")
    return ".".join([side, f"0_{module.split('_', 1)[1]}", *path])


@pytest.mark.parametrize("layers", [FIRST, SECOND], ids=["first", "second"])
def test_an_edit_of_some_layers_keeps_the_contract(rig, layers):
    first_of_each_form = {edit.form.name: edit for edit in reversed([*edits_at(rig, layers)])}
    for edit in first_of_each_form.values():
        check_everything(rig, Configuration(edits=(edit,)))


def test_a_spindle_group_of_four_blocks_is_its_block(tiny_backbone):
    config = AutoConfig.from_pretrained(tiny_backbone("roberta"), num_hidden_layers=4)
    register_attention()
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation=ATTENTION, add_pooling_layer=False).double().eval()
    family = family_of(config.to_dict())
    shape = family.read_shape(config.to_dict())
    edit = Edit(site=Site.FFN, write=Port.F, read=Port.F, form=LowRank(width=2), gate=Add())
    tokens = torch.tensor([[9, 17, 33]])
    attachment = Attachment(model, family, shape)
    hidden = []
    for groups in ((), (2,), (3,), (2, 3)):
        layers = SpindleGroups(groups=groups) if groups else LayerRange(first=3, last=3)
        configuration = Configuration(edits=(replace(edit, layers=layers),))
        deltas = moved(DeltaSet(configuration, shape, seed=0, dtype=torch.float64))
        assert [sublayer.layer for sublayer in deltas.sublayers] == [group - 1 for group in groups or (4,)]
        with torch.no_grad(), attachment.using(deltas):
            hidden.append(model(input_ids=tokens, output_hidden_states=True).hidden_states)
    last, second, third, both = hidden
    # of the embeddings and of each block, until the first that differs
    equal = [list(map(torch.equal, one, other)) for one, other in ((last, second), (last, third), (second, both))]
    assert equal == [[True] * same + [False] * (5 - same) for same in (2, 3, 3)]
