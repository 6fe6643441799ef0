"""As whom a ledger is opened."""

from sqlalchemy import Connection, text


def superuser(link: Connection) -> str | None:
    """Name of the role, if it may do anything on the server; None of an ordinary one, or of a file."""
    if link.dialect.name != "postgresql":
        return None
    role = text("SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper")
    return link.execute(role).scalar_one_or_none()
