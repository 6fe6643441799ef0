"""The ledger: studies, confirmations, trials, attempts, readings, files and events in SQLite or PostgreSQL.

What enters and leaves are the values of `studies.records`.

::

    ledger.py       Ledger: every verb, one transaction each
    keeper_writes.py, holds.py, leases.py, reports.py, reads.py, copies.py   the verbs' statements
    rows.py         records to rows and back
    invariants.py   violations: what must hold after any crash
    files.py        where the files of a study lie, and which are its own
    tables.py, views.py, migrations.py, revisions/   the tables, their views and their versions
    engine.py, database.py   URL and settings; transactions, patience and messages
    clock.py        the time that is written
"""
