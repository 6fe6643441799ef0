"""Where a ledger lives: the URL that the user gives, read and made safe to print."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from studies.errors import StorageUrlError

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_HIDDEN = "***"
_EXAMPLES = "sqlite:///deltaspace.db or postgresql://user@host/database"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAddress:
    """A storage URL that was understood.

    Attributes:
        url: For SQLAlchemy, with the driver named.
        shown: The URL as the user wrote it, without its password.
        file: The database file, absolute; None for a server.
    """

    url: URL
    shown: str
    file: Path | None

    @property
    def home(self) -> Path | None:
        """The folder of the database file; None for a server."""
        return None if self.file is None else self.file.parent

    @classmethod
    def parse(cls, text: str) -> "StorageAddress":
        """The address in a URL such as ``sqlite:///deltaspace.db`` or ``postgresql://user@host/database``.

        Raises:
            StorageUrlError: If it is no URL, its scheme is unknown, or it names no file or database.
        """
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            # The text is not shown: it may hold a password.
            raise StorageUrlError(f"a storage must be a URL such as {_EXAMPLES}; got something else.") from None
        if url.drivername not in _DRIVERS:
            raise StorageUrlError(f"a storage URL must begin like {_EXAMPLES}; got scheme '{url.drivername}'.")
        if "@" in (url.host or ""):
            raise StorageUrlError(f"a '@' in the password of a storage URL must be written %40; see {_EXAMPLES}.")
        shown = _without_secrets(url)
        url = url.set(drivername=_DRIVERS[url.drivername])
        if url.get_backend_name() == "sqlite":
            return cls(url=url, shown=shown, file=_file_of(url, shown))
        if not url.database:
            raise StorageUrlError(f"a PostgreSQL URL must name a database (postgresql://host/NAME); got {shown}.")
        return cls(url=url, shown=shown, file=None)


def _without_secrets(url: URL) -> str:
    """The URL without a password, wherever it stands."""
    hidden = dict.fromkeys((key for key in url.query if "passw" in key.lower()), _HIDDEN)
    return url.update_query_dict(hidden).render_as_string(hide_password=True).replace(quote_plus(_HIDDEN), _HIDDEN)


def _file_of(url: URL, shown: str) -> Path:
    """The absolute path of an SQLite database."""
    if url.query or url.host:
        raise StorageUrlError(
            f"an SQLite URL holds a path and nothing else; got {shown}. "
            "Write three slashes before a relative path, four before an absolute one."
        )
    if not url.database or url.database == ":memory:":
        raise StorageUrlError(f"an SQLite storage must be a file, such as sqlite:///deltaspace.db; got {shown}.")
    return Path(url.database).expanduser().absolute()
