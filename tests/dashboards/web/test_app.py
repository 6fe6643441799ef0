"""The addresses of a dashboard: what they answer, and what they refuse in a line."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.dashboard_client import DashboardClient, dashboard_of
from support.planted_ledger import Planted

from dashboards.web.pages.query import LIMITS, MOST_CHARACTERS
from search_space.published import METHODS


@pytest.fixture(scope="module")
def asker(sample_storage: str) -> Iterator[DashboardClient]:
    with dashboard_of(sample_storage) as found:
        yield found


def test_trials_are_sent_once_per_session(asker):
    first = asker.ask("/api/studies/1/trials.json").json
    assert [row[0] for row in first["trials"]["rows"]] == [0, 1, 2, 3, 4, 5]
    state = f"session={first['session']}&since={first['trials']['version']}&ranked={first['ranked']}"
    again = asker.ask(f"/api/studies/1/trials.json?{state}").json
    assert again["trials"]["rows"] == []
    other = asker.ask(f"/api/studies/1/trials.json?session=another&since={first['trials']['version']}").json
    assert len(other["trials"]["rows"]) == 6


def test_live_data_has_running_trials_and_workers(asker):
    found = asker.ask("/api/studies/1/live.json").json
    assert [(one["number"], one["worker"], one["attempt"]) for one in found["running"]] == [(4, "worker-0", 1)]
    assert [(one["worker"], one["trials"]) for one in found["workers"]] == [("worker-0", 1)]
    assert found["events"][-1]["text"] == "worker-0 was lost"


def test_curves_are_those_of_the_requested_trials(asker):
    found = asker.ask("/api/studies/1/curves.json?trials=0,3,x,-1,99999999999999999999").json
    assert found == {
        "0": {"steps": [25, 200], "scores": [0.6, 0.8], "losses": [0.5, 0.5], "rungs": [0, None]},
        "3": {"steps": [25, 200], "scores": [0.65, 0.85], "losses": [0.5, 0.5], "rungs": [0, None]},
    }


def test_trial_data_has_picture_attempts_and_files(asker):
    found = asker.ask("/api/studies/1/trials/0.json").json
    assert found["trial"]["method"] == "mam_adapter"
    assert [edit["write"] for panel in found["picture"]["panels"] for edit in panel["edits"]] == ["head", "f"]
    assert [file["path"] for file in found["files"]] == ["/snapshots/0"]
    assert [(one["attempt"], one["ending"]) for one in found["attempts"]] == [(1, "complete")]
    assert found["nearest"][0]["title"] == METHODS["mam_adapter"].title


@pytest.mark.parametrize(
    "path",
    [
        "/studies/2/",
        "/studies/1/nothing/",
        "/nothing/",
        "/api/nothing.json",
        "/api/studies/2/live.json",
        f"/studies/{'1' * 5000}/",
        f"/api/studies/{'1' * 5000}/live.json",
    ],
)
def test_missing_page_is_404_in_one_line(asker, path):
    answer = asker.ask(path)
    assert answer.status == 404
    assert b"Traceback" not in answer.body
    assert answer.body.count(b"\n") <= 1


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/plotly/..%2f..%2f__init__.py"])
def test_files_outside_are_not_served(asker, path):
    assert asker.ask(path).status in (400, 404)


def test_sql_is_answered_up_to_a_thousand_rows(asker):
    found = asker.query("select number from trials order by number").json
    assert (found["columns"], found["rows"][:2], found["is_cut"]) == (["number"], [[0], [1]], False)
    long = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200) select i from n"
    found = asker.query(long).json
    assert len(found["rows"]) == LIMITS.rows
    assert found["is_cut"]


@pytest.mark.parametrize("sql", ["delete from trials", "select 1; drop table trials", "attach 'x' as y", "", "\x00"])
def test_sql_that_writes_is_refused(asker, sql):
    answer = asker.query(sql)
    assert answer.status == 409
    assert answer.json["problem"]
    assert asker.query("select count(*) from trials").json["rows"] == [[6]]


def test_a_question_that_is_none_is_refused(asker):
    path = "/api/query.json"
    assert asker.ask(path, method="POST", body='{"sql": "select 1"}').status == 415
    for body in ("", "[]", '{"sql": 3}', "{"):
        assert asker.ask(path, method="POST", body=body, Content_Type="application/json").status == 400
    assert asker.query("x" * (MOST_CHARACTERS + 1)).status == 400
    assert asker.query("x" * (5 * MOST_CHARACTERS)).status == 413


def test_fifty_slow_queries_hold_up_no_page(asker, monkeypatch):
    begun, is_over = threading.Semaphore(0), threading.Event()

    def slow(url: str, sql: str) -> dict[str, object]:
        begun.release()
        assert is_over.wait(60)
        return {"rows": [[sql]]}

    monkeypatch.setattr("dashboards.web.app.run_sql", slow)
    with ThreadPoolExecutor(50) as people:
        queries = [people.submit(asker.query, str(number)) for number in range(50)]
        try:
            assert begun.acquire(timeout=30)
            assert [asker.ask("/api/studies/1/live.json").status for _ in range(50)] == [200] * 50
        finally:
            is_over.set()
        assert [one.result().json["rows"] for one in queries] == [[[str(number)]] for number in range(50)]


def test_study_is_renamed_and_deleted_by_its_name_alone(tmp_path):
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    planted = Planted(url, 3)
    planted.ledger.close()

    with dashboard_of(url) as found:

        def change(**body: object) -> int:
            path = "/api/studies/1/maintenance.json"
            return found.ask(path, method="POST", body=json.dumps(body), Content_Type="application/json").status

        assert change(kind="delete", name="other") == 409
        assert change(kind="delete", name="planted", to="x") == change(kind="rename", name="planted") == 400
        assert change(kind="rename", name="planted", to="Not A Name") == 409
        assert change(kind="rename", name="planted", to="anew") == 200
        assert found.ask("/api/studies/1/trials.json").json["study"]["name"] == "anew"
        assert change(kind="delete", name="planted") == 409
        assert [one["name"] for one in found.ask("/api/studies.json").json["studies"]] == ["anew"]
        assert change(kind="delete", name="anew") == 200
        assert found.ask("/api/studies.json").json["studies"] == []
        assert found.ask("/api/studies/1/trials.json").status == 404


def test_note_replaces_the_text_its_writer_read_and_is_bounded(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'noted.db'}"
    Planted(url, 2).ledger.close()
    monkeypatch.setattr("studies.ledger.keeper_writes.MOST_NOTES", 4)
    with dashboard_of(url) as found:

        def save(text: str, **more: object) -> tuple[int, str]:
            body = json.dumps({"kind": "note", "trial": 1, "text": text, **more})
            path = "/api/studies/1/annotations.json"
            answer = found.ask(path, method="POST", body=body, Content_Type="application/json")
            return answer.status, answer.json.get("problem", "")

        assert save("mine", known="")[0] == 200
        status, problem = save("another's", known="")
        assert (status, "it has become 'mine'. Save again to replace it." in problem) == (409, True)
        assert save("both", known="mine")[0] == 200
        assert save("b, a", kind="tags", known="")[0] == save("a", kind="tags", known="b, a")[0] == 200
        assert "at most 10,000 bytes; got 10,001." in save("ü" * 5000 + "x")[1]
        assert [save(str(number))[0] for number in range(3)] == [200, 200, 409]
        assert save("1", known="1")[1].startswith("a study must have at most 4 saved notes")
        first = found.ask("/api/studies/1/trials.json").json
        assert first["annotations"] == [{"trial": 1, "note": "1", "tags": ["a"], "is_to_stop": False}]
        known = f"session={first['session']}&since=0&said={first['said']}"
        assert "annotations" not in found.ask(f"/api/studies/1/trials.json?{known}").json


def test_annotations_are_recorded_unless_empty(tmp_path):
    url = f"sqlite:///{tmp_path / 'said.db'}"
    Planted(url, 2).ledger.close()

    def annotate(found: DashboardClient, study: int = 1, **annotation: object) -> int:
        path = f"/api/studies/{study}/annotations.json"
        return found.ask(path, method="POST", body=json.dumps(annotation), Content_Type="application/json").status

    with dashboard_of(url) as found:
        before = found.ask("/api/studies/1/news.json").json
        assert annotate(found, kind="note", trial=1, text="first") == 200
        assert annotate(found, kind="note", trial=1, text="odd\x00") == 200
        assert annotate(found, kind="tags", trial=None, text="a, b") == 200
        assert annotate(found, kind="stop", trial=0) == 200
        assert found.ask("/api/studies/1/news.json").json != before
        annotation = found.ask("/api/studies/1/trials.json").json["annotations"]
        assert annotation == [
            {"trial": 1, "note": "odd", "tags": [], "is_to_stop": False},
            {"trial": None, "note": "", "tags": ["a", "b"], "is_to_stop": False},
            {"trial": 0, "note": "", "tags": [], "is_to_stop": True},
        ]
        assert annotate(found, kind="note", trial=2, text="x") == 404
        assert annotate(found, 7, kind="note", text="x") == 404
        for bad in ({"kind": "lost"}, {"kind": "note", "trial": "1"}, {"kind": "note", "trial": -1}, {"sql": "x"}, {}):
            assert annotate(found, **bad) == 400
        assert annotate(found, kind="note", text="x" * (MOST_CHARACTERS + 1)) == 400
        assert found.ask("/api/studies/1/trials.json").json["annotations"] == annotation
