"""The tables of the first release; `studies.ledger.tables` creates them."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: this is the first revision."""
