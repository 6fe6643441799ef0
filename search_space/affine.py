"""Parameter counts that are affine in the width, so that budgets have a closed-form solution."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineCount:
    """Parameters of one edit at one sublayer, or of a part of it, as a function of its width R.

    Attributes:
        weights_per_width: Matrix entries per unit of R.
        biases_per_width: Bias entries per unit of R.
        weights: Matrix entries (or constants) independent of R.
        biases: Bias entries independent of R.
        extras: Entries of own LayerNorms and learned scales.
    """

    weights_per_width: int = 0
    biases_per_width: int = 0
    weights: int = 0
    biases: int = 0
    extras: int = 0

    @property
    def slope(self) -> int:
        """Parameters per unit of R."""
        return self.weights_per_width + self.biases_per_width

    @property
    def intercept(self) -> int:
        """Parameters independent of R."""
        return self.weights + self.biases + self.extras

    def __add__(self, other: "AffineCount") -> "AffineCount":
        """Return the sum of both counts."""
        return AffineCount(
            weights_per_width=self.weights_per_width + other.weights_per_width,
            biases_per_width=self.biases_per_width + other.biases_per_width,
            weights=self.weights + other.weights,
            biases=self.biases + other.biases,
            extras=self.extras + other.extras,
        )


NO_PARAMETERS = AffineCount()


def linear_parameters(inputs: int, outputs: int) -> int:
    """Return the number of parameters of a linear layer with a bias."""
    return inputs * outputs + outputs
