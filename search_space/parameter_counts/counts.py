"""Exact parameter counts by formula, without weights.

The count of an edit is affine in its width at every sublayer, so that budgets have a closed-form solution.
"""

from dataclasses import dataclass

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.edit_protocol import sublayer_count, sublayers_of
from search_space.validity import check_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Parameters of a configuration on a backbone, by counting convention.

    Attributes:
        weights_only: Matrices (and constants) of the stored deltas, the accounting of He et al. 2022, appendix B.
        with_bias: ``weights_only`` plus the biases of the forms.
        stored: All parameters kept after training. The budget limits this number.
        trained: All trained parameters: a reparameterized prefix counts its MLP instead of its table.
    """

    weights_only: int
    with_bias: int
    stored: int
    trained: int


def affine_count(edit: Edit, shape: BackboneShape) -> AffineCount:
    """Return the parameters of an edit at one instance; `instance_count` is their number."""
    return edit.form.count(edit, shape) + edit.gate.count(edit, shape)


def shared_parameter_count(edits: tuple[Edit, ...]) -> int:
    """Return the parameters that several edits share, such as the C of shared Kronecker products."""
    return sum(dict(edit.form.shared_parameters for edit in edits if edit.form.shared_parameters is not None).values())


def instance_count(edit: Edit, shape: BackboneShape) -> int:
    """Return the number of instances of an edit: its sublayers, the norms of the stack, or one outside the blocks."""
    if edit.site is Site.STACK:
        return shape.stack_norms
    return 1 if edit.site in (Site.EMBEDDING, Site.GLOBAL) else sublayer_count(edit, shape)


def widths(edit: Edit, shape: BackboneShape) -> dict[Sublayer, int]:
    """Return the width of an edit's form at each of its sublayers; 0 for forms without one."""
    sublayers = sublayers_of(edit, shape)
    form = edit.sized_form
    if form is None:
        return dict.fromkeys(sublayers, 0)
    first_widened = len(sublayers) - form.widened
    step = form.width_step
    return {sublayer: form.width + step * (index >= first_widened) for index, sublayer in enumerate(sublayers)}


def count(configuration: Configuration, shape: BackboneShape) -> Counts:
    """Count the parameters of a configuration on a backbone.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    check_on(configuration.edits, shape)
    return count_edits(configuration.edits, shape)


def count_edits(edits: tuple[Edit, ...], shape: BackboneShape) -> Counts:
    """Count the parameters of some edits on a backbone; they must be valid on it."""
    weights, biases, extras, surplus = shared_parameter_count(edits), 0, 0, 0
    for edit in edits:
        cost, number, summed = affine_count(edit, shape), instance_count(edit, shape), total_width(edit, shape)
        weights += number * cost.weights + summed * cost.weights_per_width
        biases += number * cost.biases + summed * cost.biases_per_width
        extras += number * cost.extras
        surplus += edit.form.training_surplus(edit, shape)
    stored = weights + biases + extras
    return Counts(weights_only=weights, with_bias=weights + biases, stored=stored, trained=stored + surplus)


def total_width(edit: Edit, shape: BackboneShape) -> int:
    """Return the summed width of an edit's form over all its instances; 0 for forms without one."""
    form = edit.sized_form
    if form is None:
        return 0
    if edit.site in (Site.EMBEDDING, Site.GLOBAL):
        return form.width
    number = sublayer_count(edit, shape)
    return number * form.width + form.width_step * min(form.widened, number)
