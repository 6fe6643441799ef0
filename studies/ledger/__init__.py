"""Ledger: studies, confirmations, trials, attempts, readings, files and events in SQLite or PostgreSQL.

Its arguments and results are the values of `studies.records`.

::

    ledger.py       Ledger: every operation, one transaction each
    keeper_writes.py, holds.py, leases.py, reports.py, reads.py, copies.py   statements of the operations
    rows.py         conversion of records to rows and back
    invariants.py   violations of what must hold after any crash
    files.py        folder of a study, and its own files
    tables.py, views.py, migrations.py, revisions/   tables, views and their versions
    engine.py, database.py   URL and settings; transactions, patience and messages
    clock.py        recorded times
"""
