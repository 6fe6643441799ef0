"""Design dimensions of the edits of one side as texts, as in tables and in the ledger."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SideDimensions:
    """Dimensions of the edits at attention or at the FFN; several values are joined by ``+``.

    Untrained edits have no learning rate.

    Attributes:
        form: Functional form.
        write: Modified representation.
        insertion: ``sequential`` or ``parallel``.
        gate: Composition function.
        heads: Number of blocks of the form: ``single``, ``query_heads`` or ``key_value_heads``.
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
