"""The design dimensions of the edits of one side, as texts: what tables show and what a ledger holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SideDimensions:
    """The dimensions of the edits at attention or at the FFN; several values are joined by ``+``.

    Edits that are not trained have no learning rate.

    Attributes:
        form: Functional form.
        write: Modified representation.
        insertion: ``sequential`` or ``parallel``.
        gate: Composition function.
        heads: In how many blocks the form works: ``single``, ``query_heads`` or ``key_value_heads``.
        bottleneck: Prefix length, adapter bottleneck or rank, the smallest of several; None without one.
        activation: Nonlinearity; None without one.
        scale: Fixed scale; None without one.
        learning_rate: Peak learning rate of these edits.
    """

    form: str
    write: str
    insertion: str
    gate: str
    heads: str
    bottleneck: int | None
    activation: str | None
    scale: float | None
    learning_rate: float | None = None
