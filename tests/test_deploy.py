"""The files of deploy/ that start the service and index every night: checked by the tools they are written for."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import _parser
from app.core.settings import Settings

DEPLOY = Path(__file__).parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
MANIFESTS = sorted(file for file in (DEPLOY / "k8s").iterdir() if file.name != "kustomization.yaml")
PROGRAM = "/opt/docs-assistant/.venv/bin/docs-assistant"
HOME = "/var/lib/docs-assistant"


def tool(name: str, how: str) -> str:
    """The path of a program; the test is skipped if there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go/bin"))
    if not found:
        pytest.skip(f"no {name} here: {how}")
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# ---- what people paste --------------------------------------------------------------------------

ROOT = DEPLOY.parent
NO_TRAILING_COMMENTS = {".service", ".timer", ".cron", ".example", ".env"}  # there it becomes part of the value
SHELL_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_what_is_pasted_works_as_it_stands():
    """No comment behind a value or a command, no lone assignment that a program would not see, no space behind a backslash."""
    found, files = [], sorted(file for file in DEPLOY.rglob("*") if file.is_file())
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            value = (
                re.match(r"#?[A-Za-z]\w*=", line) and file.suffix in NO_TRAILING_COMMENTS and re.search(r"\s#", line)
            )
            command = (
                re.match(r"#\s{3,}\S.*?\S\s{2,}\S", line) and file.suffix != ".sh"
            )  # set off, with words behind it
            if value or command:
                found.append((file.name, line))
    blocks = [
        (file.name, line)
        for file in [*ROOT.glob("docs/[a-z][a-z]/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
        for block in SHELL_BLOCK.findall(file.read_text(encoding="utf-8"))
        for line in block.splitlines()
    ]
    assert len(blocks) > 100
    # zsh, the shell of macOS, takes # for a word in what is typed; an assignment alone isn't exported
    wrong = re.compile(r"(?:^|\s)#|\\\s+$|^[A-Z_]+=(?:'[^']*'|\"[^\"]*\"|\S*)$")
    assert found + [(name, line) for name, line in blocks if wrong.search(line)] == []
    shell = "\n".join(f"{line}" for _, line in blocks)
    checked = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


# ---- systemd -----------------------------------------------------------------------------------


def installed(folder: Path, **changes: str) -> list[str]:
    """Copies of the units whose program exists; `changes` of texts in them."""
    files = []
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
        for old, new in changes.items():
            text = text.replace(old, new)
        (folder / unit.name).write_text(text, encoding="utf-8")
        files.append(str(folder / unit.name))
    return files


def test_systemd_accepts_the_units(tmp_path: Path):
    """`systemd-analyze verify` has nothing to say: no unknown key, no wrong value, no missing unit."""
    verify = tool("systemd-analyze", "it comes with systemd")
    checked = run(verify, "verify", "--man=no", *installed(tmp_path))
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    spoilt = run(verify, "verify", "--man=no", *installed(tmp_path, KillSignal="KilSignal"))
    assert "KilSignal" in spoilt.stderr


def test_what_runs_is_shut_in_and_bounded():
    """Systemd's own judgement of the sandbox is "OK", and units and containers have limits of memory, tasks and files."""
    analyze = tool("systemd-analyze", "it comes with systemd")
    for unit in (unit for unit in UNITS if unit.suffix == ".service"):
        judged = run(analyze, "security", "--offline=true", "--threshold=30", str(unit))
        assert judged.returncode == 0, judged.stdout[-300:]
        assert {"MemoryMax", "TasksMax"} <= set(re.findall(r"^(\w+)=", unit.read_text(encoding="utf-8"), re.MULTILINE))
    assert "LimitNOFILE=65536" in (DEPLOY / "systemd/docs-assistant.service").read_text(encoding="utf-8")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert services
    for service in services.values():
        assert service["read_only"]
        assert {"mem_limit", "pids_limit", "ulimits"} <= set(service)


@pytest.mark.parametrize("timer", [unit for unit in UNITS if unit.suffix == ".timer"], ids=lambda unit: unit.name)
def test_the_timer_is_of_the_run_and_goes_off_once_a_night(timer: Path):
    """The timer's name is that of the run's unit, and its calendar means one time a day."""
    analyze = tool("systemd-analyze", "it comes with systemd")
    assert timer.with_suffix(".service") in UNITS
    (calendar,) = re.findall(r"^OnCalendar=(.*)$", timer.read_text(encoding="utf-8"), re.MULTILINE)
    answer = run(analyze, "calendar", "--iterations=2", "--base-time=2026-01-01 12:00:00", calendar)
    nights = re.findall(r"(\d{4}-\d\d-\d\d) 03:10:00", answer.stdout)
    assert nights == ["2026-01-02", "2026-01-03"]


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_units_start_commands_that_exist_from_the_settings_directory(unit: Path):
    """ExecStart is a command that the program has; .env and data/ are in the one directory that may be written."""
    text = unit.read_text(encoding="utf-8")
    ((program, arguments),) = re.findall(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
    assert program == PROGRAM
    _parser().parse_args(arguments.split())
    assert f"\nWorkingDirectory={HOME}\n" in text
    assert f"\nStateDirectory={Path(HOME).name}\n" in text


# ---- cron --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo all is well", ""),
        ("seq 30; echo 'docs-assistant: the site is away' >&2; exit 1", "docs-assistant: the site is away"),
        ("echo 1 failed; exit 2", "1 failed"),
    ],
)
def test_cron_mails_only_what_went_wrong(tmp_path: Path, script: str, printed: str):
    """The line has a time, a user and a command; a good night prints nothing, a bad one the end of its log."""
    lines = (DEPLOY / "docs-assistant.cron").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if re.match(r"[\d*]", line))
    time, user, command = line.split("\t")
    assert re.fullmatch(r"10 3 \* \* \*", time)
    assert user == "docs-assistant"
    assert "%" not in command  # cron makes a new line of it
    program = tmp_path / "docs-assistant"
    program.write_text(f"#!/bin/sh\n[ $1 = ingest ] || exit 64\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    night = run("/bin/sh", "-c", command.replace(PROGRAM, str(program)).replace(HOME, str(tmp_path)))
    output = (night.stdout + night.stderr).splitlines()
    assert output[-1:] == ([printed] if printed else [])
    assert len(output) <= 20


# ---- Kubernetes --------------------------------------------------------------------------------


@pytest.fixture
def objects() -> dict[str, Any]:
    """All manifests, by kind."""
    return {(found := yaml.safe_load(file.read_text(encoding="utf-8")))["kind"]: found for file in MANIFESTS}


def test_nothing_is_restarted_for_what_a_restart_does_not_mend(objects: dict[str, Any]):
    """Restarts depend on the process alone, requests on the index; `/health` itself is for people."""
    (service,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    probes = {kind: service[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/health/live", "liveness": "/health/live", "readiness": "/health/ready"}
    check = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").partition("\nHEALTHCHECK")[2].partition("\n\n")[0]
    assert "'/health/live'" in check


def test_a_collection_has_a_job_of_its_own(objects: dict[str, Any]):
    """The line in kustomization.yaml makes it of the other: another name, command and time, all else is the same."""
    told = (DEPLOY / "k8s/kustomization.yaml").read_text(encoding="utf-8")
    ((command),) = re.findall(r"^#\s+(sed .*) > cronjob-handbook\.yaml$", told, re.MULTILINE)
    made = subprocess.run(command, shell=True, cwd=DEPLOY / "k8s", capture_output=True, text=True, check=True)
    job, every = yaml.safe_load(made.stdout), objects["CronJob"]
    assert job["metadata"]["name"] == "docs-assistant-ingest-handbook"
    assert job["spec"]["schedule"] == "40 4 * * *"
    (_, _, line) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0].pop("command")
    arguments = line.partition(" || ")[0].split()[1:]
    parsed = _parser().parse_args(arguments)
    assert (parsed.collection, parsed.wait) == (["handbook"], 3600)
    every["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0].pop("command")
    assert job["spec"]["jobTemplate"] == every["spec"]["jobTemplate"]


def test_kubernetes_accepts_the_manifests(tmp_path: Path):
    """Every field is in the schema of its kind and has the right type; a misspelt field is an error."""
    validate = tool("kubectl-validate", "go install sigs.k8s.io/kubectl-validate@latest")
    checked = run(validate, *map(str, MANIFESTS))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    spoilt = tmp_path / "spoilt.yaml"
    text = (DEPLOY / "k8s/cronjob.yaml").read_text(encoding="utf-8")
    spoilt.write_text(text.replace("volumeMounts:", "volumesMounts:"), encoding="utf-8")
    assert run(validate, str(spoilt)).returncode != 0


def test_kustomize_puts_all_manifests_together():
    """`kubectl apply -k deploy/k8s` sends every manifest, each container with the image named in one place."""
    built = run(tool("kubectl", "see kubernetes.io/docs/tasks/tools"), "kustomize", str(DEPLOY / "k8s"))
    assert built.returncode == 0, built.stderr
    objects = list(yaml.safe_load_all(built.stdout))
    assert len(objects) == len(MANIFESTS)
    assert {c["image"] for o in objects for c in containers(o)} == {"registry.example.org/docs-assistant:0.1.0"}


def test_kustomization_names_every_manifest():
    """No file of the folder is left out."""
    named = yaml.safe_load((DEPLOY / "k8s/kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(named) == [file.name for file in MANIFESTS]


def pods(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The pod templates in an object."""
    spec = found["spec"]
    spec = spec.get("jobTemplate", {}).get("spec", spec)
    if "template" in spec:
        yield spec["template"]


def containers(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for pod in pods(found):
        yield from pod["spec"]["containers"]


def test_the_parts_refer_to_each_other(objects: dict[str, Any]):
    """Service and affinity select the pods of the Deployment and no others; ports, volumes and claims exist."""
    assert set(objects) == {"CronJob", "Deployment", "PersistentVolumeClaim", "Service"}
    service = objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    (job,) = pods(objects["CronJob"])
    (near,) = job["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for selector in (
        objects["Service"]["spec"]["selector"],
        objects["Deployment"]["spec"]["selector"]["matchLabels"],
        near["labelSelector"]["matchLabels"],
    ):
        assert selector.items() <= service
        assert not selector.items() <= job["metadata"]["labels"].items()
    (server,) = containers(objects["Deployment"])
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    probes = [server[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {*probes, *(port["targetPort"] for port in objects["Service"]["spec"]["ports"])} == set(ports)
    for kind in ("Deployment", "CronJob"):
        for pod in pods(objects[kind]):
            volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
            mounted = {
                mount["name"]: mount["mountPath"] for c in pod["spec"]["containers"] for mount in c["volumeMounts"]
            }
            assert set(mounted) == set(volumes)
            claim = volumes["data"]["persistentVolumeClaim"]["claimName"]
            assert claim == objects["PersistentVolumeClaim"]["metadata"]["name"]


def test_pods_fit_the_image(objects: dict[str, Any]):
    """User, port and data directory are those of the Dockerfile; nothing but the volumes can be written."""
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for kind in ("Deployment", "CronJob"):
        (pod,) = pods(objects[kind])
        assert f"--uid {pod['spec']['securityContext']['runAsUser']} " in image
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert f"DOCS_STORE={container['volumeMounts'][0]['mountPath']}\n" in image
    (server,) = containers(objects["Deployment"])
    assert f"DOCS_PORT={server['ports'][0]['containerPort']} " in image
    assert server["ports"][0]["containerPort"] == Settings.load(None).port
    _parser().parse_args(server["args"])


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (2, 0), (1, 1), (137, 1)])
def test_a_job_fails_only_when_nothing_was_published(objects: dict[str, Any], tmp_path: Path, code: int, expected: int):
    """Code 2 of the command, published with failed pages, is no reason to run it again."""
    (container,) = containers(objects["CronJob"])
    program = tmp_path / "docs-assistant"
    program.write_text(f"#!/bin/sh\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    shell, option, script = container["command"]
    assert run(shell, option, script.replace("docs-assistant", str(program), 1)).returncode == expected
