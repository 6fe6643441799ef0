import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from support.dashboard_client import dashboard_of
from support.processes import printed_by

from dashboards.jsonable import to_json
from studies.analysis.sql import Limits, QueryResult, run_query
from studies.errors import QueryError
from studies.ledger import sql_process
from studies.ledger.database import superuser
from studies.ledger.ledger import Ledger

WRITES = {
    "delete": "DELETE FROM trials",
    "update": "UPDATE studies SET epoch = 9",
    "insert": "INSERT INTO events VALUES (1, 1, 'now', 'x', NULL, 'x')",
    "drop": "DROP TABLE trials",
    "create": "CREATE TABLE mine (a INT)",
    "comment": "-- SELECT\nDELETE FROM trials",
    "block comment": "/* SELECT */ DELETE FROM trials",
    "with delete": "WITH x AS (SELECT 1) DELETE FROM events",
    "commit": "COMMIT",
    "begin": "BEGIN",
    "vacuum": "VACUUM",
    "nothing": "   ",
}


def refusal(url, sql):
    with pytest.raises(QueryError) as error:
        run_query(url, sql)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_query_answers_with_columns_and_rows(two_trials, storage_url):
    sql = "SELECT number, state, score AS s, reason, attention_form FROM trials ORDER BY number"
    assert run_query(storage_url, sql) == QueryResult(
        columns=("number", "state", "s", "reason", "attention_form"),
        rows=((0, "running", None, None, "softmax_memory"), (1, "complete", 0.75, None, "softmax_memory")),
    )


def test_values_are_the_same_on_both_databases_and_fit_into_json(two_trials, storage_url):
    columns = "created_at, proposal, avg(number), sum(seed - seed), count(*)"
    sql = f"SELECT {columns} FROM trials WHERE number = 1 GROUP BY 1, 2"
    if storage_url.startswith("postgresql"):
        sql = sql.replace("proposal", "proposal::text AS proposal")
    [(created, proposal, mean, total, count)] = run_query(storage_url, sql).rows
    assert created == two_trials.ledger.trial(two_trials.id, 1).created_at.isoformat(timespec="microseconds")
    assert created.endswith("+00:00")
    assert json.loads(proposal) == {"structure": "a", "learning_rate": 0.1 + 0.2}
    assert (mean, total, count) == (1, 0, 1)
    json.dumps([created, proposal, mean, total, count])


LONG_NUMBERS = ("1e400", "-1e5000", "'Infinity'", "1.5", "1e20")


@pytest.mark.parametrize("storage_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_a_number_beyond_every_float_is_text(two_trials, storage_url):
    sql = f"SELECT {', '.join(f'{one}::numeric' for one in LONG_NUMBERS)}"
    [row] = json.loads(to_json(run_query(storage_url, sql).rows))
    assert row == ["1" + 400 * "0", "-1" + 5000 * "0", "Infinity", 1.5, 10**20]


def test_all_forms_of_read_queries_are_accepted(two_trials, storage_url):
    for sql in (
        "WITH best AS (SELECT max(score) AS s FROM trials) SELECT s FROM best",
        "VALUES (0.75)",
        "-- the best\n  /* of all */ select max(score) from trials",
        # SQLite's grammar has no parentheses around a whole query
        *(() if storage_url.startswith("sqlite") else ["(SELECT 0.75)"]),
        "SELECT 0.75 WHERE 'a%b' LIKE '%'",
    ):
        assert run_query(storage_url, sql).rows == ((0.75,),), sql


def test_a_query_that_writes_is_refused_also_with_a_limit(two_trials, storage_url):
    before = two_trials.everything()
    for name, sql in WRITES.items():
        assert "a query must" in refusal(storage_url, sql), name
        with pytest.raises(QueryError):
            run_query(storage_url, sql, Limits(rows=5, seconds=5))
        assert two_trials.everything() == before, name


def test_several_statements_are_refused(two_trials, storage_url):
    before = two_trials.everything()
    for sql in ("SELECT 1; SELECT 2", "SELECT 1; DELETE FROM trials", "SELECT 1; COMMIT; DELETE FROM trials"):
        assert refusal(storage_url, sql) == "a query must be one statement; got several. Send them one by one."
        assert two_trials.everything() == before


def test_a_query_that_is_wrong_is_answered_in_one_line(two_trials, storage_url):
    assert "colour" in refusal(storage_url, "SELECT colour FROM trials")
    assert refusal(storage_url, "SELECT FROM WHERE").startswith("the database refuses the query: ")
    message = refusal(storage_url, "SELECT * FROM experiments")
    tables = "artefacts, attempts, confirmations, deltaspace_version, events, examples, readings, studies, trials"
    views = "leaderboard, configurations, curves, budget_use, confirmation_results, fronts"
    assert message.endswith(f"Its views: {views}. Its tables: {tables}.")


NEVER_ENDS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
FIVE = "SELECT * FROM (VALUES (1), (2), (3), (4), (5)) AS five"


def test_row_limit_is_applied(two_trials, storage_url):
    queries = (FIVE, f"{FIVE};", "VALUES (1), (2), (3), (4), (5)", f"WITH a AS ({FIVE}) SELECT * FROM a")
    for sql, rows in itertools.product(queries, (0, 3, 5, 6, None)):
        answer = run_query(storage_url, sql, Limits(rows=rows))
        assert tuple(row[0] for row in answer.rows) == (1, 2, 3, 4, 5)[:rows]
        assert answer.is_cut == (rows in (0, 3))


def test_rows_without_end_are_taken_one_by_one(two_trials, storage_url):
    sql = NEVER_ENDS.replace("max(i)", "i")
    assert run_query(storage_url, sql, Limits(rows=4)).rows == ((1,), (2,), (3,), (4,))


def test_results_other_than_rows_are_limited_too(two_trials, storage_url):
    sql = "PRAGMA table_info(trials)" if storage_url.startswith("sqlite") else "EXPLAIN SELECT * FROM trials, studies"
    answer = run_query(storage_url, sql, Limits(rows=1))
    assert (len(answer.rows), answer.is_cut) == (1, True)


def test_a_query_is_stopped_when_its_time_is_up(two_trials, storage_url):
    with pytest.raises(QueryError) as error:
        run_query(storage_url, NEVER_ENDS, Limits(seconds=0.2))
    assert str(error.value) == "a query may take 0.2 s; this one was stopped. Ask for less, or allow more."
    assert run_query(storage_url, "SELECT count(*) FROM trials", Limits(seconds=30)).rows == ((2,),)


MILLION = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000)"
LONG_STEPS = {
    "a search in long text": "SELECT instr(printf('%.*c', 90000000, 'a'), printf('%.*c', 40000000, 'a') || 'b')",
    "a sort of a product": f"{MILLION} SELECT a.i, b.i FROM n AS a, n AS b ORDER BY a.i * b.i",
    "joined texts": f"{MILLION} SELECT replace(group_concat(i || 'aaaaaaa'), 'a', printf('%.*c', 90, 'a')) FROM n",
}
MUST_END_SECONDS = 20


@pytest.mark.parametrize("name", LONG_STEPS)
def test_a_long_step_of_sqlite_ends_at_its_time_and_memory(sample_storage, name):
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"may take 2 s|must fit in memory|too big"):
        run_query(sample_storage, LONG_STEPS[name], Limits(seconds=2, memory_bytes=1 << 28))
    assert time.monotonic() - started < MUST_END_SECONDS


@pytest.mark.postgres
def test_a_server_that_does_not_stop_is_left(postgres_url, postgres_server):
    Ledger.open(postgres_url).close()
    session = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(61%'"
    with ThreadPoolExecutor(1) as pool, postgres_server.connect() as link:
        query = pool.submit(run_query, postgres_url, "SELECT pg_sleep(61)", Limits(seconds=2))
        while not (found := link.execute(session).fetchone()):
            assert not query.done()
        os.kill(found[0], signal.SIGSTOP)
        try:
            with pytest.raises(QueryError, match="may take 2 s"):
                query.result(MUST_END_SECONDS)
        finally:
            os.kill(found[0], signal.SIGCONT)


@pytest.mark.postgres
def test_a_server_stops_once_the_bytes_limit_is_passed(postgres_url):
    Ledger.open(postgres_url).close()
    started = time.monotonic()
    for limits in ({}, {"rows": 1_000_000}):
        sql = "SELECT repeat('x', 1000000) FROM generate_series(1, 1000000)"  # a terabyte
        with pytest.raises(QueryError, match=r"^the result of a query must be at most 10,000,000 bytes; this one"):
            run_query(postgres_url, sql, Limits(size_bytes=10_000_000, seconds=60, **limits))
    assert time.monotonic() - started < MUST_END_SECONDS


@pytest.mark.postgres
def test_temporary_files_of_a_server_are_limited_where_they_may_be(postgres_url):
    Ledger.open(postgres_url).close()
    assert run_query(postgres_url, "SHOW temp_file_limit").rows == (("1GB",),)


def test_values_without_a_size_count_too(sample_storage):
    with pytest.raises(QueryError, match="must be at most 10,000 bytes"):
        run_query(sample_storage, f"{MILLION} SELECT '' FROM n", Limits(size_bytes=10_000))


@pytest.mark.parametrize("storage_url", ["sqlite"], indirect=True)
def test_a_query_that_does_not_fit_in_memory_is_one_line(two_trials, storage_url):
    with pytest.raises(
        QueryError, match=r"^the result of a query must fit in memory; this one does not. Select less.$"
    ):
        run_query(storage_url, "SELECT printf('%.*c', 50000000, 'x')", Limits(memory_bytes=10_000_000))


def test_a_query_needs_no_main_module(sample_storage):
    program = f"import studies.analysis.sql as sql; print(sql.run_query({sample_storage!r}, 'SELECT 1').rows)"
    assert printed_by("-c", program) == "((1,),)\n"


def test_query_ends_with_its_parent_process(sample_storage):
    command = [sys.executable, "-I", "-S", sql_process.__file__]
    file = sample_storage.removeprefix("sqlite:///")
    limits = {"seconds": None, "rows": None, "size_bytes": 10**8, "memory_bytes": 1 << 28}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        sql_process.send(process.stdin, {"file": file, "uri": f"file:{file}", "sql": NEVER_ENDS, **limits})
        process.stdin.close()  # as the system does
        assert process.wait(MUST_END_SECONDS) == 1


@pytest.fixture
def interruptible():
    """Enable interruptions, which a process that a shell began in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_stops_the_query_in_the_database(two_trials, storage_url):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def ask() -> None:
        timer.start()  # it may come before the query
        run_query(storage_url, NEVER_ENDS, Limits(seconds=60))

    with pytest.raises(KeyboardInterrupt):
        ask()
    timer.join()
    if storage_url.startswith("postgres"):
        sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'WITH RECURSIVE n%'"
        assert run_query(storage_url, sql).rows == ((0,),)


@pytest.mark.parametrize("storage_url", ["sqlite"], indirect=True)
def test_a_query_of_a_thread_ends_with_the_program(two_trials, storage_url):
    script = (
        "import threading, time\nfrom studies.analysis.sql import Limits, run_query\n"
        f"asked = {storage_url!r}, {NEVER_ENDS!r}, Limits(seconds=60)\n"
        "asking = threading.Thread(target=run_query, args=asked)\nasking.start()\n"
        "time.sleep(1)\nprint(asking.is_alive())"
    )
    began = time.monotonic()
    assert printed_by("-c", script) == "True\n"
    assert time.monotonic() - began < 50


@pytest.mark.parametrize("limits", [{"rows": -1}, {"seconds": 0}, {"seconds": -1}, {"seconds": float("nan")}])
def test_limits_that_cannot_be_are_refused(limits):
    with pytest.raises(QueryError, match="got"):
        Limits(**limits)


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE '{folder}/other.db' AS other",
        "EXPLAIN DELETE FROM t",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = ON",
        "VACUUM INTO '{folder}/copy.db'",
        "SELECT load_extension('evil')",
    ],
)
def test_sqlite_refuses_all_but_reads(tmp_path, sql):
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    message = refusal(f"sqlite:///{tmp_path / 'x.db'}", sql.format(folder=tmp_path))
    assert message.startswith(("a query must", "the database refuses"))
    assert [path.name for path in tmp_path.iterdir()] == ["x.db"]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "sql",
    [
        "WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "EXPLAIN ANALYZE DELETE FROM events",
        "SELECT nextval('events_id_seq')",
        "SELECT * INTO mine FROM events",
    ],
)
def test_postgresql_refuses_all_but_reads(postgres_url, values, sql):
    with Ledger.open(postgres_url) as ledger:
        study = ledger.create_study(values.study())
        ledger.take_over(study.id, "keeper")
        before = ledger.events(study.id)
        refusal(postgres_url, sql)
        assert ledger.events(study.id) == before


@pytest.mark.postgres
def test_unlimited_query_on_a_server_times_out(postgres_url, monkeypatch):
    Ledger.open(postgres_url).close()
    monkeypatch.setattr("studies.analysis.sql.LONGEST_ON_A_SERVER_SECONDS", 0.2)
    with pytest.raises(QueryError, match="canceling statement due to statement timeout"):
        run_query(postgres_url, "SELECT pg_sleep(60)")


@pytest.mark.postgres
def test_superuser_differs_from_an_ordinary_role(postgres_url, postgres_server):
    with Ledger.open(postgres_url) as ledger:
        assert ledger.read(superuser) == "deltaspace"
    postgres_server.run_sql("CREATE ROLE ordinary LOGIN")
    postgres_server.run_sql("CREATE DATABASE of_the_ordinary OWNER ordinary")
    try:
        with Ledger.open(postgres_server.url("of_the_ordinary").replace("deltaspace@", "ordinary@")) as ledger:
            assert ledger.read(superuser) is None
    finally:
        postgres_server.drop_database("of_the_ordinary")
        postgres_server.run_sql("DROP ROLE ordinary")


READER = """
CREATE ROLE reader LOGIN;
GRANT CONNECT ON DATABASE {name} TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
"""


@pytest.mark.postgres
@pytest.mark.parametrize("storage_url", ["postgres"], indirect=True)
def test_a_query_of_the_page_takes_a_reader_and_no_superuser(two_trials, postgres_url, postgres_server):
    with dashboard_of(postgres_url) as asker:
        answer = asker.query("SELECT count(*) FROM trials")
    assert answer.status == 409
    assert answer.json["problem"] == (
        "the role of a query here must be an ordinary one; deltaspace may read files of the server and end sessions. "
        "Give a role that only reads: deltaspace dashboard --query-storage URL."
    )
    name = postgres_url.partition("@/")[2].partition("?")[0]
    with postgres_server.connect(name) as link:
        link.execute(READER.format(name=name))
    try:
        with dashboard_of(postgres_url, query_url=postgres_url.replace("deltaspace@", "reader@")) as asker:
            assert asker.query("SELECT count(*) FROM trials").json["rows"] == [[2]]
            assert "permission denied" in asker.query("SELECT pg_read_file('/etc/passwd')").json["problem"]
            assert asker.query("SELECT place FROM leaderboard WHERE 1 = 0").json["columns"] == ["place"]
    finally:
        with postgres_server.connect(name) as link:
            link.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.postgres
def test_side_effects_of_postgresql_queries_are_undone(postgres_url):
    """Before version 16 a large object can be created in a read-only transaction."""
    Ledger.open(postgres_url).close()
    with suppress(QueryError):
        run_query(postgres_url, "SELECT lo_create(0)")
    assert run_query(postgres_url, "SELECT count(*) FROM pg_largeobject_metadata").rows == ((0,),)


def test_values_and_answers_of_too_many_bytes_are_refused(sample_storage):
    with pytest.raises(QueryError, match="too big"):
        run_query(sample_storage, "SELECT zeroblob(1000000000)")
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) SELECT printf('%0100d', i) FROM n"
    assert len(run_query(sample_storage, many, Limits(size_bytes=10_000)).rows) == 100
    with pytest.raises(QueryError, match=r"must be at most 9,999 bytes; this one is larger"):
        run_query(sample_storage, many, Limits(size_bytes=9_999))
