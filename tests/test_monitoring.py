"""Alert rules and dashboard: accepted by the tools they are written for, and about metrics that the service has."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.app.routes.indexed import indexed
from tests.app.routes.test_metrics import FIXED, get, scraped
from tests.app.routes.test_records import QUESTION, ask
from tests.dashboard import typed

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/docs-assistant.json"
TARGET = {"job", "instance"}  # labels that Prometheus adds
LABELS = {
    **{f"docs_assistant_{name}": set(filter(None, labels.split(","))) for name, labels in FIXED.items()},
    "docs_assistant_ingest_last_run_timestamp_seconds": {"index", "result"},
    "docs_assistant_ingest_last_run_seconds": {"index"},
}


def promtool(*arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
    """Its result; the test is skipped if there is no promtool."""
    here = ROOT / ".venv/bin/promtool"
    found = str(here) if here.exists() else shutil.which("promtool")
    if not found:
        missing = "no promtool here: make install-dev gets it from Debian, or install Prometheus"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    return subprocess.run(
        [found, *map(str, arguments)], input=given, capture_output=True, text=True, timeout=60, check=False
    )


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((RULES / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return read


def queries() -> Iterator[tuple[str, str]]:
    """The title and the expression of each query of the dashboard."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


def test_prometheus_takes_the_rules_and_each_alert_fires_only_when_it_should(tmp_path: Path):
    shutil.copytree(RULES, tmp_path, dirs_exist_ok=True)
    checked = promtool("check", "config", "--lint=all", "--lint-fatal", tmp_path / "prometheus.yaml")
    assert checked.returncode == 0, checked.stderr
    fired = ""
    for file in ("tests.yaml", "tests-week.yaml"):
        tested = promtool("test", "rules", tmp_path / file)
        assert tested.returncode == 0, tested.stdout
        fired += (tmp_path / file).read_text(encoding="utf-8")
    for rule in alerts():  # an alert that can't fire fails the test in which it should
        assert f"""exp_samples: [{{labels: '{{alertname="{rule["alert"]}"}}', value: 1}}]""" in fired, rule["alert"]
    spoilt = (tmp_path / "alerts.yaml").read_text(encoding="utf-8").replace("> 1.8e9", "> 1.8e10")
    (tmp_path / "alerts.yaml").write_text(spoilt, encoding="utf-8")
    assert (
        "DocsAssistantMemory" in (failed := promtool("test", "rules", tmp_path / "tests.yaml")).stdout + failed.stderr
    )


async def test_prometheus_takes_the_metrics(tmp_path: Path):
    async with indexed(tmp_path) as service:
        await ask(service.app, QUESTION)
        page = (await get(service.app)).text
    checked = promtool("check", "metrics", given=page)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert promtool("check", "metrics", given=page.replace("# TYPE", "# TYP", 1) + "1a 2").returncode != 0


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path):
    rules = [{"record": f"q{number}", "expr": query} for number, (_, query) in enumerate(queries())]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}), encoding="utf-8"
    )
    checked = promtool("check", "rules", tmp_path / "rules.yaml")
    assert checked.returncode == 0, checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout


def test_the_dashboard_has_the_types_of_grafanas_schema(tmp_path: Path):
    modules = ROOT / ".venv/js/node_modules"
    if not (modules / "@grafana/schema").exists() or not (modules / ".bin/tsc").exists():
        missing = "no @grafana/schema here: make install-dev gets it with npm"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    (tmp_path / "node_modules").symlink_to(modules)
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext")

    def compiled(given: Mapping[str, Any]) -> str:
        (tmp_path / "dashboard.ts").write_text(typed(given), encoding="utf-8")
        command = [str(modules / ".bin/tsc"), *options, "dashboard.ts"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False).stdout

    good = dashboard()
    assert compiled(good) == ""
    good["panels"][1]["options"]["colorMode"] = "rainbow"
    good["panels"][2]["gridpos"] = {}
    assert "rainbow" in (told := compiled(good))
    assert "gridpos" in told


def test_the_dashboard_works_with_any_prometheus():
    """Datasource, job and instance are chosen in the page; each panel has its own place, a unit and a description."""
    board = dashboard()
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "job", "instance"]
    places = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & places
        assert place["x"] + place["w"] <= 24
        places |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert panel["description"].endswith(".")
    for title, query in queries():
        for selector in re.findall(r"(?:docs_assistant|process)_\w+(\{[^}]*\})?", query):
            assert 'job=~"$job", instance=~"$instance"' in selector, title


async def test_alerts_and_dashboard_are_about_metrics_and_labels_that_the_service_has(tmp_path: Path):
    async with indexed(tmp_path) as service:
        await ask(service.app, QUESTION)
        families = await scraped(service.app)
    kinds = {family.name: family.type for family in families}
    series = {name + ending: name for name, kind in kinds.items() for ending in ENDINGS.get(kind, ("",))}
    for where, query in [*((one["alert"], one["expr"]) for one in alerts()), *queries()]:
        named = re.findall(r"\b((?:docs_assistant|process)_\w+)(?:\{([^}]*)\})?", query)
        known = set(TARGET)
        for name, selector in named:
            assert name in series, f"{where}: {name}"
            labels = LABELS.get(series[name], set()) | TARGET
            known |= labels | ({"le"} if name.endswith("_bucket") else set())
            assert set(re.findall(r"(\w+)\s*[=!]", selector)) <= labels, f"{where}: {name}"
        grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", query)
        assert {label.strip() for labels in grouped for label in labels.split(",")} <= known, where


ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}


def test_each_alert_says_what_to_do_and_leads_to_a_section_of_the_documentation():
    for language in ("en", "cs"):
        listed = (ROOT / f"docs/{language}/monitoring.md").read_text(encoding="utf-8")
        for rule in alerts():
            assert f"| `{rule['alert']}` |" in listed
            assert rule["labels"]["severity"] in {"critical", "warning"}
            assert {"summary", "action", "guide"} == set(rule["annotations"])
            page, _, section = rule["annotations"]["guide"].partition("#")
            text = (ROOT / page.replace("/en/", f"/{language}/")).read_text(encoding="utf-8")
            assert f"{{#{section}}}" in text, rule["alert"]
