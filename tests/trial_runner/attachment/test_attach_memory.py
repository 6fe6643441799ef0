"""Memory of attaching: the parameters of the deltas, and hardly more.

Memory is counted as the storages of all live tensors, and as the bytes that `tracemalloc` counts for Python.
"""

import gc
import json
import tracemalloc
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from search_space.backbones import FAMILIES, BackboneFamily, shape_of
from search_space.published import published_method
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.deltas.delta_set import DeltaSet

pytestmark = pytest.mark.slow

MEGABYTE = 2**20
CONFIG = json.loads((Path(__file__).parents[2] / "data" / "backbones" / "roberta_base" / "config.json").read_text())
SHAPE = shape_of(CONFIG)
FAMILY: BackboneFamily = FAMILIES["roberta"]
INPUT_IDS = torch.tensor([[0, 42, 43, 2]])


@pytest.fixture(scope="module")
def alone() -> Iterator[None]:
    """Freeze the objects of other tests, so that the collector skips them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def model(alone: None) -> nn.Module:
    """Build a frozen RoBERTa-base of random weights."""
    from transformers import RobertaConfig, RobertaModel

    register_attention()
    config = RobertaConfig(**CONFIG, attn_implementation=ATTENTION)
    with torch.device("meta"):
        model = RobertaModel(config, add_pooling_layer=False)
    model = model.to_empty(device="cpu").requires_grad_(False).eval()
    embeddings = model.embeddings
    embeddings.position_ids = torch.arange(config.max_position_embeddings)[None]
    embeddings.token_type_ids = torch.zeros_like(embeddings.position_ids)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.normal_(std=0.02, generator=generator)
    use(model, new_deltas(0))  # what is imported and compiled once is not what attaching costs
    return model


def new_deltas(seed: int, *, hidden: int | None = 800) -> DeltaSet:
    """Build a MAM adapter, its prefix from an MLP or not."""
    values = {"prefix_length": 16, "bottleneck": 16} | ({} if hidden is None else {"reparameterization_width": hidden})
    return DeltaSet(published_method("mam_adapter").configuration(SHAPE, values), SHAPE, seed=seed)


def use(model: nn.Module, deltas: DeltaSet) -> None:
    """Attach, train a step's gradients, and leave no trace."""
    attachment = Attachment(model, FAMILY, SHAPE)
    run(model, attachment, deltas)
    attachment.detach()


def run(model: nn.Module, attachment: Attachment, deltas: DeltaSet) -> None:
    with attachment.using(deltas):
        model(input_ids=INPUT_IDS).last_hidden_state.square().sum().backward()
    deltas.zero_grad(set_to_none=True)


def bytes_of(deltas: DeltaSet) -> int:
    """Return the bytes of trained parameters, and of the fixed scale of each FFN's adapter."""
    return 4 * (deltas.counts.trained + SHAPE.encoder_layers)


def tensor_bytes() -> int:
    """Return the summed sizes of all storages of live tensors and their gradients."""
    gc.collect()
    storages: dict[int, int] = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), Tensor):  # isinstance would ask lazy modules for their class
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None and not tensor.is_meta:
                    storage = tensor.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


@pytest.fixture
def traced() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def python_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_attaching_mam_costs_its_parameters_and_less_than_a_megabyte(model, traced):
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    tensors, python = tensor_bytes(), python_bytes()
    attachment, deltas = Attachment(model, FAMILY, SHAPE), new_deltas(1)
    run(model, attachment, deltas)
    parameters = bytes_of(deltas)
    grown = tensor_bytes() - tensors
    assert grown == parameters, "no copy of the backbone, no activation is kept"
    assert grown + python_bytes() - python <= parameters + MEGABYTE
    assert [parameter.data_ptr() for parameter in model.parameters()] == addresses
    assert all(parameter.grad is None for parameter in model.parameters())
    attachment.detach()


def test_detaching_frees_everything(model, traced):
    tensors, python = tensor_bytes(), python_bytes()
    attachment, deltas = Attachment(model, FAMILY, SHAPE), new_deltas(1)
    run(model, attachment, deltas)
    gone = weakref.ref(attachment), weakref.ref(deltas)
    attachment.detach()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    del attachment, deltas
    assert tensor_bytes() == tensors
    assert [reference() for reference in gone] == [None, None]
    assert python_bytes() - python < MEGABYTE / 16


def test_thirty_two_delta_sets_on_one_backbone_grow_linearly(model, traced):
    attachment = Attachment(model, FAMILY, SHAPE)
    tensors, python = [tensor_bytes()], [python_bytes()]
    held: list[DeltaSet] = []
    for _ in range(4):
        held += [new_deltas(len(held) + index, hidden=None) for index in range(8)]
        with torch.no_grad(), attachment.using(held[-1]):
            model(input_ids=INPUT_IDS)
        tensors.append(tensor_bytes())
        python.append(python_bytes())
    attachment.detach()
    of_one = bytes_of(held[0])
    assert [after - before for before, after in pairwise(tensors)] == [8 * of_one] * 4
    grown = [after - before for before, after in pairwise(python)]
    assert max(grown) < 1.1 * min(grown) + MEGABYTE / 16
    assert max(grown) < 8 * MEGABYTE
