"""Ledgers that earlier versions wrote, as files of ``tests/data/ledgers``.

``version_N`` was written by the last release whose tables were of version N: a study that was killed in the middle, a
finished one, and from version 2 on a confirmation of it. Of versions 1, 2 and 4 a running trial has its snapshot and
the best finished one its weights, the files of the others are gone, as they may be; of version 3 all files are gone.
``@ARTEFACTS@`` stands for their folder, which lies beside the ledger. ``postgres.sql`` is the first of these studies as
such a release has written it to PostgreSQL, without its files.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from studies.store.ledger import Ledger

LEDGERS = Path(__file__).parents[1] / "data" / "ledgers"
VERSIONS = (1, 2, 3, 4)


class Earlier:
    """A copy of a ledger in a folder of its own, still of its version."""

    def __init__(self, folder: Path, version: int) -> None:
        self.version, self.source = version, LEDGERS / f"version_{version}"
        self.folder = folder
        self.file = folder / "earlier.db"
        self.artefacts = folder / "artefacts"
        if (self.source / "artefacts").exists():
            shutil.copytree(self.source / "artefacts", self.artefacts)
        script = (self.source / "ledger.sql").read_text().replace("@ARTEFACTS@", str(self.artefacts))
        with closing(sqlite3.connect(self.file)) as link:
            link.executescript(script)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def connect(self) -> Any:
        return sqlite3.connect(self.file)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as link:
            return list(link.execute(sql))

    def call(self, *arguments: str) -> int:
        from deltaspace.commands.main import main

        return main([*arguments, "--storage", self.url])

    def migrate(self) -> None:
        Ledger.open(self.url).close()

    def launch(self, study: str, *options: str) -> int:
        settings = ["--set", f"fleet.artefacts={self.artefacts}", "--quiet", *options]
        return self.call("launch", str(self.source / f"{study}.yaml"), *settings)


class EarlierOnServer(Earlier):
    """The same on PostgreSQL: a study that was killed in the middle."""

    def __init__(self, folder: Path, version: int, url: str) -> None:
        self.version, self.source, self.folder = version, LEDGERS / f"version_{version}", folder
        self.artefacts, self._url = folder / "artefacts", url
        script = (self.source / "postgres.sql").read_text().replace("@ARTEFACTS@", str(self.artefacts))
        with self.connect() as link:
            link.execute(script)

    @property
    def url(self) -> str:
        return self._url

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._url)
