"""Methods at all biases, at single channels, or at all weights of the backbone; and the task head alone."""

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Constant, Diagonal, Form, Full, Intrinsic, Sparse
from search_space.gates import Add, Multiply
from search_space.parameter_counts.budget import ParameterBudget
from search_space.published.edits import at_attention, at_ffn
from search_space.published.method import HyperParameter, PublishedMethod, Values
from search_space.published.settings import LABELS

_AGHAJANYAN = (
    "Aghajanyan et al. 2021, Intrinsic Dimensionality Explains the Effectiveness of Language Model Fine-Tuning, ACL"
)
_DEVLIN = "Devlin et al. 2019, BERT: Pre-training of Deep Bidirectional Transformers, NAACL"
_GUO = "Guo et al. 2021, Parameter-Efficient Transfer Learning with Diff Pruning, ACL"
_LIU = (
    "Liu et al. 2022, Few-Shot Parameter-Efficient Fine-Tuning is Better and Cheaper than In-Context Learning, NeurIPS"
)
_PETERS = "Peters et al. 2019, To Tune or Not to Tune? Adapting Pretrained Representations to Diverse Tasks, RepL4NLP"
_ZAKEN = "Ben Zaken et al. 2022, BitFit: Simple Parameter-efficient Fine-tuning, ACL"

_DIMENSION = HyperParameter(
    name="dimension", alias="dint", default=1000, meaning="dimension of the subspace", is_size=True
)
_FRACTION = HyperParameter(
    name="fraction",
    alias="fraction",
    default=0.005,
    meaning="share of the backbone's weights that is changed in the end",
    is_whole=False,
    is_size=True,
)
_TENSORS = HyperParameter(
    name="tensors",
    alias="tensors",
    default=None,
    meaning="parameter tensors, for the count of the first stage; those of the backbone unless set",
    is_counted_only=True,
)


def _bitfit(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    order = (Port.Q, Port.K, Port.V, Port.O, Port.G, Port.U, Port.F, Port.NORM)
    edits = [
        Edit(site=site, write=write, read=None, form=Constant(), gate=Add())
        for site in (Site.ATTENTION, Site.FFN)
        for write in order
        if (site, write) in shape.biased_ports
    ]
    if shape.stack_norms:
        edits.append(Edit(site=Site.STACK, write=Port.NORM, read=None, form=Constant(), gate=Add()))
    if not edits:
        raise InvalidEditError(f"BitFit needs biases; {shape.family} has none. Choose another method.", rule="V14")
    return tuple(edits)


def _ia3(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    return (
        *(at_attention(port, port, Diagonal(), Multiply()) for port in (Port.K, Port.V)),
        at_ffn(Port.M, Port.M, Diagonal(), Multiply()),
    )


def _of_the_model(form: Form) -> tuple[Edit, ...]:
    return (Edit(site=Site.GLOBAL, write=Port.WEIGHTS, read=None, form=form, gate=Add()),)


def _diff_pruning(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    kept = ParameterBudget(fraction=float(values["fraction"])).parameters(shape)
    return _of_the_model(Sparse(width=max(1, kept)))


HEAD_ONLY = PublishedMethod(
    name="head_only",
    title="task head alone",
    citation=_PETERS,
    build=lambda shape, values: (),
)

CHANNELS: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="bitfit",
        title="BitFit",
        citation=_ZAKEN,
        hyperparameters=(LABELS,),
        build=_bitfit,
    ),
    PublishedMethod(
        name="ia3",
        title="(IA)³",
        citation=_LIU,
        build=_ia3,
    ),
)

WHOLE_MODEL: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="full_finetuning",
        title="full fine-tuning",
        citation=_DEVLIN,
        build=lambda shape, values: _of_the_model(Full()),
    ),
    PublishedMethod(
        name="diff_pruning",
        title="diff pruning",
        citation=_GUO,
        hyperparameters=(_FRACTION, _TENSORS),
        build=_diff_pruning,
    ),
    PublishedMethod(
        name="intrinsic_did",
        title="intrinsic dimension, DID",
        citation=_AGHAJANYAN,
        hyperparameters=(_DIMENSION,),
        build=lambda shape, values: _of_the_model(Intrinsic(width=int(values["dimension"]))),
    ),
    PublishedMethod(
        name="intrinsic_said",
        title="intrinsic dimension, SAID",
        citation=_AGHAJANYAN,
        hyperparameters=(_DIMENSION,),
        build=lambda shape, values: _of_the_model(Intrinsic(width=int(values["dimension"]), per_tensor=True)),
    ),
)
