"""A revision such as a later release may have: every study gets a note, in a table that is made anew on SQLite."""

import sqlalchemy
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table(
        "studies", recreate="auto" if op.get_bind().dialect.name != "sqlite" else "always"
    ) as table:
        table.add_column(sqlalchemy.Column("note", sqlalchemy.Text, server_default="", nullable=False))
    with op.batch_alter_table(
        "trials", recreate="auto" if op.get_bind().dialect.name != "sqlite" else "always"
    ) as table:
        table.add_column(sqlalchemy.Column("note", sqlalchemy.Text))
