"""How nodes reach the hub: what differs is named, and a token is never told."""

import pytest

from studies.backends import tune_worker
from studies.backends.resource_probe import differences, hub_settings
from studies.backends.tune_worker import Home


@pytest.fixture
def bare(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path


def test_what_is_set_on_one_side_alone_is_a_difference(bare, monkeypatch):
    here = hub_settings()
    assert list(differences(here, here)) == []
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_HOME")
    assert list(differences(hub_settings(), here)) == [
        f"HF_HOME is not set ({bare} on the launching machine)",
        "HF_HUB_OFFLINE is 1 (not set on the launching machine)",
    ]


@pytest.mark.parametrize("how", ["variable", "file"])
def test_whether_there_is_a_token_is_told_and_the_token_is_not(bare, monkeypatch, how):
    before = hub_settings()
    if how == "file":
        (bare / "token").write_text("hf_secret")
    else:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert "hf_secret" not in str(hub_settings())
    told = list(differences(before, hub_settings()))
    assert told == ["a token of the hub is not set (there on the launching machine)"]


def test_an_error_on_another_node_names_it_and_what_is_different_there(bare, monkeypatch):
    home = Home(keeper="k", namespace="n", node="a", mark=None)
    monkeypatch.setattr(tune_worker, "_address", lambda: "10.0.0.2")
    monkeypatch.setattr(tune_worker, "_node", lambda: "a")
    assert tune_worker._elsewhere(home) == ""
    monkeypatch.setattr(tune_worker, "_node", lambda: "b")
    assert tune_worker._elsewhere(home) == " That was on node 10.0.0.2."
    monkeypatch.setenv("HF_HOME", "/own")
    told = tune_worker._elsewhere(home)
    assert told == f" That was on node 10.0.0.2, where HF_HOME is /own ({bare} on the launching machine)."
