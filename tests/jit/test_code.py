"""Code that is compiled: what is said of it, and whether it is there."""

import time

import pytest

from unbounded import settings
from unbounded.jit import code as code_module
from unbounded.jit.code import Code, said
from unbounded.jit.kernel import NotKeptError, kernel


def test_waiting_is_said(capsys, monkeypatch):
    monkeypatch.setattr(code_module, "_SAID", 0.05)
    with said("compiling"):
        time.sleep(0.2)
    assert "unbounded: compiling" in capsys.readouterr().err
    monkeypatch.setattr(code_module, "_SAID", 60.0)
    with said("compiling"):
        pass
    assert not capsys.readouterr().err


def test_a_worker_may_be_quiet(capsys, monkeypatch):
    monkeypatch.setattr(code_module, "_SAID", 0.05)
    monkeypatch.setattr(code_module, "_quiet", False)
    code_module.be_quiet()
    with said("compiling"):
        time.sleep(0.2)
    assert not capsys.readouterr().err


@kernel
def twice(x):
    return x + x


def test_what_is_said_of_the_time(capsys, monkeypatch):
    monkeypatch.setattr(code_module, "_SAID", 0.0)
    code = Code("it", [twice], lambda: time.sleep(0.05))
    code.compile()
    assert not capsys.readouterr().err  # it was kept
    monkeypatch.setattr(code, "load", lambda: None)
    code._ready = False
    code.compile()
    assert f"compiling it, about {code.seconds:.0f} s, once per machine" in capsys.readouterr().err
    monkeypatch.setattr(code_module, "can_keep", lambda: False)
    code._ready = False
    code.compile()
    assert "in each process, as nothing can be kept" in capsys.readouterr().err


@pytest.mark.parametrize(("jit", "runs"), [("always", 1), ("auto", 1), ("never", 0)])
def test_it_is_ready_after_one_run(monkeypatch, jit, runs):
    monkeypatch.setattr(settings, "jit", jit)
    ran = []
    code = Code("it", [twice], lambda: ran.append(code.ready))
    assert code.ready == bool(runs)
    assert code.ready == bool(runs)
    assert ran == [True] * runs  # in a rehearsal everything is ready


def test_what_is_not_kept_is_looked_for_once(monkeypatch):
    monkeypatch.setattr(settings, "jit", "auto")
    ran = []

    def missing():
        ran.append(1)
        raise NotKeptError("it")

    code = Code("it", [twice], missing)
    assert not code.ready
    assert not code.ready
    assert len(ran) == 1
