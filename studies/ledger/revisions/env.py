"""Run by Alembic: revisions on the connection that `studies.ledger.migrations` holds."""

from alembic import context

from studies.ledger.tables import VERSIONS

context.configure(connection=context.config.attributes["connection"], version_table=VERSIONS.name, render_as_batch=True)
context.run_migrations()
