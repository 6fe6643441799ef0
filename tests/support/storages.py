"""Tests of much work are shared out over storages: what one does on one of them, another does on the other."""

import pytest
from support import rotation

STORAGES = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))

on_one_storage = pytest.mark.parametrize("storage_url", rotation.parts(STORAGES), indirect=True)
"""On SQLite or on PostgreSQL."""

on_the_other_storage = pytest.mark.parametrize("storage_url", rotation.parts(STORAGES[::-1]), indirect=True)
"""On the one that `on_one_storage` does not take."""
