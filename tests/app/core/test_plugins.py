"""`module:Class` from settings: each mistake is named before anything runs."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from app.core.errors import SettingsError
from app.core.plugins import load, made


class Base(ABC):
    @abstractmethod
    def work(self) -> str: ...


MODULE = """
from pydantic import BaseModel, Field
from tests.app.core.test_plugins import Base

class Plain(Base):
    def __init__(self, path, limit=3):
        if limit < 0:
            raise RuntimeError("limit below zero")
        self.path = path
    def work(self): return self.path

class Open(Base):
    def __init__(self, **options): self.options = options
    def work(self): return ""

class Fields(BaseModel, Base):
    key: str
    size: int = Field(default=3, gt=0)
    def work(self): return self.key

class Tolerant(Fields):
    def __init__(self, key, **rest): super().__init__(key=key)

class Made(Plain):
    def __init__(self, parts): self.path = parts
    @classmethod
    def from_defaults(cls, size=2): return cls(parts=size)

class Derived(Made): ...
class Half(Base): ...
class Other: ...
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "plugged_module.py").write_text(MODULE)
    (tmp_path / "plugged_broken.py").write_text("import no_such_package_at_all")
    (tmp_path / "plugged_failing.py").write_text("raise OSError('no disk')")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "plugged_module"


def test_a_class_is_made_with_its_arguments(module: str) -> None:
    """Also one that takes any name, with pydantic's fields or with `**kwargs` behind them."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("Plain", {"path": "a", "limit": 4}, "a"),
        ("Open", {"whatever": 1}, ""),
        ("Fields", {"key": "k"}, "k"),
        ("Tolerant", {"key": "k", "extra": 1}, "k"),
    ]
    for name, arguments, works in cases:
        assert made(f"{module}:{name}", Base, arguments, "X").work() == works
    assert made(f"{module}:Made", Base, {"size": 5}, "X", by="from_defaults").work() == 5
    assert made(f"{module}:Derived", Base, {"parts": 6}, "X", by="from_defaults").work() == 6


def test_every_mistake_is_named(module: str) -> None:
    """The setting, the path, what is wrong, and what there is instead; values, which may be secret, are not repeated."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("json", {}, "write it as module:Class"),
        ("a/b:C", {}, "write it as module:Class"),
        ("no_such_module.sub:C", {}, "there is no module no_such_module. Install the package"),
        ("json.no_such:C", {}, "there is no module json.no_such"),
        ("plugged_broken:C", {}, "can't be imported: No module named 'no_such_package_at_all'"),
        ("plugged_failing:C", {}, "can't be imported: no disk (OSError)"),
        (
            f"{module}:Missing",
            {},
            "has no class Missing. Its Base classes: Derived, Fields, Half, Made, Open, Plain, Tolerant.",
        ),
        (f"{module}:number", {}, "has no class number"),
        (f"{module}:Other", {}, "Other is no Base. Derive it from"),
        (f"{module}:Half", {}, "is abstract: it lacks work"),
        (f"{module}:Plain", {"pat": "a"}, "has no argument pat. Its arguments: path, limit."),
        (f"{module}:Plain", {}, "needs the argument path. Its arguments: path, limit."),
        (f"{module}:Plain", {"path": "a", "limit": -1}, "refuses its arguments: limit below zero (RuntimeError)"),
        (f"{module}:Fields", {"key": "a", "sizes": 1}, "has no argument sizes. Its arguments: key, size."),
        (f"{module}:Fields", {"key": {"s3cret": 1}}, "refuses its arguments: key: Input should be a valid string"),
    ]
    for path, arguments, says in cases:
        with pytest.raises(SettingsError) as raised:
            made(path, Base, arguments, "DOCS_X")
        assert str(raised.value).startswith(f"DOCS_X={path}"), path
        assert says in str(raised.value)
        assert "s3cret" not in str(raised.value)


def test_a_class_without_a_signature_checks_itself() -> None:
    """Nothing is refused that Python itself can't know."""
    assert load("pydantic:BaseModel", BaseModel, "X") is BaseModel
    assert made("builtins:dict", dict, {"a": 1}, "X") == {"a": 1}
