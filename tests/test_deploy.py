"""The files of deploy/ that start the service and index every night: checked by the tools they are written for."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.core.settings import Settings
from app.http.limits import ANSWER_PATHS
from app.routes.runs import STOP_SECONDS
from deploy import lock
from docs_assistant.cli.serve import IDLE
from docs_assistant.cli.server import DRAIN_TIMEOUT, NOTICE
from ingestion.sources import load_sources
from tests.docs_assistant.cli.conftest import parse

DEPLOY = Path(__file__).parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
CHART = DEPLOY / "helm"
PROGRAM = "/opt/docs-assistant/.venv/bin/docs-assistant"
HOME = "/var/lib/docs-assistant"


def tool(name: str, how: str) -> str:
    """The path of a program; the test is skipped if there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go/bin"))
    if not found:
        pytest.skip(f"no {name} here: {how}")
    return found


def read(name: str) -> str:
    """A file of deploy/."""
    return (DEPLOY / name).read_text(encoding="utf-8")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# ---- what people paste --------------------------------------------------------------------------

ROOT = DEPLOY.parent
NO_TRAILING_COMMENTS = {".service", ".timer", ".cron", ".example", ".env"}  # there it becomes part of the value
SHELL_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_what_is_pasted_works_as_it_stands():
    """No comment behind a value or a command, no lone assignment that a program would not see, no space behind a backslash."""
    found, files = [], sorted(file for file in DEPLOY.rglob("*") if file.is_file() and file.suffix != ".pyc")
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            assigned = re.match(r"#?[A-Za-z]\w*=", line) and file.suffix in NO_TRAILING_COMMENTS
            value = assigned and re.search(r"\s#", line)
            # set off, with words behind it
            command = re.match(r"#\s{3,}\S.*?\S\s{2,}\S", line) and file.suffix != ".sh"
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


def test_nobody_kills_a_service_before_its_answers_have_ended():
    """systemd, Compose and Kubernetes wait longer than a stop may take: the notice, the answers, and runs and connections."""
    longest = NOTICE + DRAIN_TIMEOUT + 2 * STOP_SECONDS
    unit = read("systemd/docs-assistant.service")
    compose = yaml.safe_load(read("compose.yaml"))
    values = yaml.safe_load(read("helm/values.yaml"))
    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]) > longest
    assert int(compose["services"]["assistant"]["stop_grace_period"].removesuffix("s")) > longest
    assert values["terminationGracePeriodSeconds"] > values["preStopSeconds"] + longest


def test_haproxy_notices_a_stop_while_the_service_still_answers():
    """Its checks take less time than the notice, its timeouts don't cut a stream off, and every part of the file exists."""
    text = read("haproxy/haproxy.cfg")
    for inter, fall in re.findall(r"check inter (\d+)s fall (\d+)", text):
        assert int(inter) * (int(fall) + 1) < NOTICE
    assert int(re.findall(r"timeout http-keep-alive (\d+)s", text)[0]) < IDLE
    assert {int(one) for one in re.findall(r"timeout (?:client|server) (\d+)s", text)} == {610}
    (named,) = re.findall(r"acl is_question path (.*)", text)
    assert set(named.split()) == ANSWER_PATHS


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
    assert "LimitNOFILE=65536" in read("systemd/docs-assistant.service")
    services = yaml.safe_load(read("compose.yaml"))["services"]
    assert services
    for service in services.values():
        assert service["read_only"]
        assert {"mem_limit", "pids_limit", "ulimits"} <= set(service)


def test_the_user_of_the_service_in_opensearch_may_only_read():
    """In Compose, the service has the reader's role and runs the ingester's; OpenSearch gets the files that define them."""
    folder = DEPLOY / "opensearch"
    roles, mapping, users = (
        yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8"))
        for name in ("roles", "roles_mapping", "internal_users")
    )
    services = yaml.safe_load(read("compose.opensearch.yaml"))["services"]
    reader = roles["docs_reader"]
    allowed = reader["cluster_permissions"] + reader["index_permissions"][0]["allowed_actions"]
    reading = re.compile(r"indices:data/read/\w+|[\w:]+/(main|get)|.*/aliases/get")
    assert [one for one in allowed if not reading.fullmatch(one)] == []
    for name, role in {"assistant": "reader", "ingest": "ingester", "nightly": "ingester"}.items():
        user = f"docs-{role}"
        address = f"opensearch://{user}:${{OPENSEARCH_{role.upper()}_"
        assert services[name]["environment"]["DOCS_STORE"].startswith(address)
        assert mapping[f"docs_{role}"]["users"] == [user]
        assert users[user]["hash"] == f"${{envbc.OPENSEARCH_{role.upper()}_PASSWORD}}"
    mounted = {volume.split(":")[0] for volume in services["opensearch"]["volumes"]}
    assert {f"./opensearch/{file.name}" for file in folder.iterdir()} <= mounted


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
    parse(arguments.split())
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
    lines = read("docs-assistant.cron").splitlines()
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


# ---- Kubernetes: the Helm chart ------------------------------------------------------------------

ONE_POD: dict[str, Any] = {}
"""The chart as it is: an index on a volume."""
SEVERAL_PODS: dict[str, Any] = {
    "replicas": 3,
    "persistence": {"enabled": False},
    "settings": {"DOCS_STORE": "opensearchs://search.example.org:9200/docs", "DOCS_LIMITS_STORE": "redis://redis/0"},
    "sources": '[[source]]\nurl = "https://docs.example.org/sitemap.xml"\n',
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "docs-tls"},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "serviceMonitor": {"enabled": True, "keySecret": "docs-assistant"},
    "ingest": {
        "timeZone": "Europe/Prague",
        "jobs": [
            {"name": "docs", "schedule": "10 3 * * *", "args": ["--collection", "docs"]},
            {"name": "handbook", "schedule": "40 4 * * *", "args": ["--collection", "handbook", "--wait", "3600"]},
        ],
    },
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "docs", "operator": "Exists"}],
    "podAnnotations": {"example.org/team": "docs"},
}


def rendered(folder: Path, values: Mapping[str, Any]) -> str:
    """What `helm install` sends to the cluster with these values."""
    helm = tool("helm", "see helm.sh/docs/intro/install, or go install helm.sh/helm/v3/cmd/helm@latest")
    (file := folder / "values.yaml").write_text(yaml.safe_dump(dict(values)), encoding="utf-8")
    monitor = ("--api-versions", "monitoring.coreos.com/v1")
    made = run(helm, "template", "docs-assistant", str(CHART), "--namespace", "docs", "-f", str(file), *monitor)
    assert made.returncode == 0, made.stderr
    return made.stdout


def objects_of(text: str) -> dict[str, dict[str, Any]]:
    """The objects of manifests, by kind and name."""
    found = [one for one in yaml.safe_load_all(text) if one]
    return {f"{one['kind']} {one['metadata']['name']}": one for one in found}


@pytest.fixture(params=[ONE_POD, SEVERAL_PODS], ids=["one pod", "several pods"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """All objects of the chart."""
    return objects_of(rendered(tmp_path, request.param))


def pods(objects: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pod templates, each with the kind of its object."""
    for found in objects.values():
        spec = found.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield found["kind"], spec["template"]


def test_the_chart_is_what_helm_expects():
    """`helm lint --strict` finds nothing."""
    checked = run(tool("helm", "see helm.sh/docs/intro/install"), "lint", "--strict", str(CHART))
    assert checked.returncode == 0, checked.stdout
    assert "0 chart(s) failed" in checked.stdout


@pytest.mark.parametrize("values", [ONE_POD, SEVERAL_PODS], ids=["one pod", "several pods"])
def test_kubernetes_accepts_the_manifests(values: dict[str, Any], tmp_path: Path):
    """Every field is in the schema of its kind and has the right type; a misspelt field is an error."""
    validate = tool("kubectl-validate", "go install sigs.k8s.io/kubectl-validate@latest")
    # the schema of the Prometheus operator isn't built in
    known = [text for text in rendered(tmp_path, values).split("\n---\n") if "kind: ServiceMonitor" not in text]
    (file := tmp_path / "all.yaml").write_text("\n---\n".join(known), encoding="utf-8")
    checked = run(validate, str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    file.write_text(file.read_text(encoding="utf-8").replace("volumeMounts:", "volumesMounts:"), encoding="utf-8")
    assert run(validate, str(file)).returncode != 0


def test_an_index_on_a_volume_has_one_pod(tmp_path: Path):
    """Several pods with one volume are an error that names both ways out."""
    helm = tool("helm", "see helm.sh/docs/intro/install")
    refused = run(helm, "template", "docs-assistant", str(CHART), "--set", "replicas=2")
    assert refused.returncode != 0
    assert "set replicas to 1, or persistence.enabled to false" in refused.stderr
    one, several = (objects_of(rendered(tmp_path, values)) for values in (ONE_POD, SEVERAL_PODS))
    assert one["Deployment docs-assistant"]["spec"]["strategy"] == {"type": "Recreate"}
    assert several["Deployment docs-assistant"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    kinds, others = ({key.split()[0] for key in made} for made in (one, several))
    assert others - kinds == {"Ingress", "NetworkPolicy", "PodDisruptionBudget", "ServiceMonitor"}
    assert kinds - others == {"PersistentVolumeClaim"}


def test_nothing_is_restarted_for_what_a_restart_does_not_mend(objects: dict[str, Any]):
    """Restarts depend on the process alone, requests on the index; `/health` itself is for people."""
    (service,) = objects["Deployment docs-assistant"]["spec"]["template"]["spec"]["containers"]
    probes = {kind: service[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/health/live", "liveness": "/health/live", "readiness": "/health/ready"}
    check = read("Dockerfile").partition("\nHEALTHCHECK")[2].partition("\n\n")[0]
    assert "'/health/live'" in check


def test_the_parts_refer_to_each_other(objects: dict[str, Any]):
    """Selectors select the pods of the Deployment and no run; ports, volumes, claims and maps exist."""
    deployment = objects["Deployment docs-assistant"]
    service = deployment["spec"]["template"]["metadata"]["labels"].items()
    selectors = [objects["Service docs-assistant"]["spec"]["selector"], deployment["spec"]["selector"]["matchLabels"]]
    if budget := objects.get("PodDisruptionBudget docs-assistant"):
        selectors.append(budget["spec"]["selector"]["matchLabels"])
    for kind, pod in pods(objects):
        for near in pod["spec"].get("affinity", {}).get("podAffinity", {}).values():
            selectors += [term["labelSelector"]["matchLabels"] for term in near]
        if kind == "CronJob":
            assert not [one for one in selectors if one.items() <= pod["metadata"]["labels"].items()]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        (container,) = pod["spec"]["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        claim = volumes["data"].get("persistentVolumeClaim", {}).get("claimName")
        assert not claim or f"PersistentVolumeClaim {claim}" in objects
        maps = [volumes["sources"]["configMap"]["name"]] if "sources" in volumes else []
        maps += [one["configMapRef"]["name"] for one in container["envFrom"] if "configMapRef" in one]
        assert {f"ConfigMap {name}" for name in maps} <= set(objects)
    assert all(selector.items() <= service for selector in selectors)
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    probes = [server[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {*probes, *(port["targetPort"] for port in objects["Service docs-assistant"]["spec"]["ports"])} == set(ports)


def test_pods_fit_the_image(objects: dict[str, Any]):
    """User, port and data directory are those of the Dockerfile; nothing but the volumes can be written."""
    image = read("Dockerfile")
    for kind, pod in pods(objects):
        assert f"--uid {pod['spec']['securityContext']['runAsUser']} " in image
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "registry.example.org/docs-assistant:1.0.0"
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert f"DOCS_STORE={mounts['data']}\n" in image
        if kind == "Deployment":
            assert f"DOCS_PORT={container['ports'][0]['containerPort']} " in image
            assert container["ports"][0]["containerPort"] == Settings.load(None).port
            parse(container["args"])
        else:
            parse(["ingest", *container["args"]])


def test_the_image_has_what_several_pods_share():
    """PostgreSQL for conversations and Redis for limits are settings of the chart, so their clients are in the image."""
    (wanted,) = re.findall(r"--only-deps '(.+)'", read("Dockerfile"))
    assert {"psycopg", "redis"} <= {named.partition("==")[0] for named in lock.locked([wanted])}


def test_settings_and_sources_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The program accepts the settings of the chart, and the sources are a valid file of sites."""
    objects = objects_of(rendered(tmp_path, SEVERAL_PODS))
    given = objects["ConfigMap docs-assistant"]["data"]
    assert given["DOCS_LIMITS_STORE"] == "redis://redis/0"
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert Settings.load(None).log_json
    (file := tmp_path / "sources.toml").write_text(
        objects["ConfigMap docs-assistant-sources"]["data"]["sources.toml"], encoding="utf-8"
    )
    assert [source.url for source in load_sources(file)] == ["https://docs.example.org/sitemap.xml"]


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (2, 0), (1, 1), (137, 1)])
def test_a_job_fails_only_when_nothing_was_published(tmp_path: Path, code: int, expected: int):
    """Code 2 of the command, published with failed pages, is no reason to run it again; arguments are passed on."""
    objects = objects_of(rendered(tmp_path, SEVERAL_PODS))
    pod = objects["CronJob docs-assistant-handbook"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program = tmp_path / "docs-assistant"
    program.write_text(f'#!/bin/sh\necho "$@"\nexit {code}\n', encoding="utf-8")
    program.chmod(0o755)
    shell, option, script, *name = container["command"]
    ended = run(shell, option, script.replace("docs-assistant", str(program), 1), *name, *container["args"])
    assert (ended.returncode, ended.stdout.split()) == (
        expected,
        ["ingest", "--trigger", "nightly", *container["args"]],
    )


# ---- make install -------------------------------------------------------------------------------

PROGRAM_THAT_NOTES = """#!/bin/sh
echo "$(basename $0) $UV_DEFAULT_INDEX $*" >> {log}
case "$*" in
  *deploy/lock.py*) exit 0 ;;
  *"config list"*) echo "global.index-url='https://mirror.example.org/simple'" ;;
  *{failing}*) exit 1 ;;
  *uv.txt*) cp "$0" "$(dirname "$0")/uv" ;;
esac
"""


@pytest.mark.parametrize(
    ("failing", "last"),
    [
        ("nothing", "uv https://mirror.example.org/simple pip uninstall"),
        ("compile-bytecode", "python https://mirror.example.org/simple -m pip"),  # uv's registry doesn't answer
        ("uv.txt", "python https://mirror.example.org/simple -m pip"),  # there is no uv for this platform
    ],
)
def test_uv_installs_from_the_index_of_pip_and_pip_where_it_cannot(tmp_path: Path, failing: str, last: str):
    log = tmp_path / "log"
    (tmp_path / "bin").mkdir()
    file = tmp_path / "bin/python"
    file.write_text(PROGRAM_THAT_NOTES.format(log=log, failing=f'"{failing}"'), "utf-8")
    file.chmod(0o755)
    done = run(
        "env",
        "-u",
        "UV_DEFAULT_INDEX",
        "-u",
        "PYTHONPATH",
        str(DEPLOY / "install.sh"),
        str(tmp_path),
        "-e",
        ".[embedded,mcp]",
    )
    assert done.returncode == 0
    lines = log.read_text("utf-8").splitlines()
    assert lines[-1].startswith(last)
    assert ("pip tries it" in done.stderr) == (failing != "nothing")
    assert lines[-2 if failing == "nothing" else -1].endswith("--no-build-isolation --no-deps -e .[embedded,mcp]")
    installs = [line for line in lines if re.search(r"\binstall ", line)]
    assert len(installs) >= 4
    assert [
        line for line in installs if "--require-hashes" not in line and not line.endswith("-e .[embedded,mcp]")
    ] == []


# ---- requirements.lock ---------------------------------------------------------------------------


def needed_by(requirements: Iterable[str]) -> set[str]:
    """The packages that these requirements bring on this machine, as the installed packages say themselves."""
    found: dict[tuple[str, str], None] = {}
    todo = [Requirement(line) for line in requirements]
    for wanted in todo:
        for extra in ("", *wanted.extras):
            key = (canonicalize_name(wanted.name), extra)
            if key in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
                continue
            found[key] = None
            for line in metadata.requires(wanted.name) or []:
                brought = Requirement(line)
                if not brought.marker or brought.marker.evaluate({"extra": extra}):
                    brought.marker = None
                    todo.append(brought)
    return {name for name, _ in found}


@pytest.mark.parametrize(
    "extras", [(), ("embedded", "mcp"), ("embedded", "files", "mcp", "postgres", "redis"), ("dev",)]
)
def test_the_part_of_the_lock_is_what_the_extras_need(extras: tuple[str, ...]):
    """No package is missing, none is too many, and the installed versions are the locked ones."""
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    expected = needed_by([*project["dependencies"], *(line for extra in extras for line in optional[extra])])
    lines = lock.locked([f".[{','.join(extras)}]" if extras else "."])
    here = {Requirement(line.rstrip(" \\")) for line in (block.splitlines()[0] for block in lines.values())}
    here = {one for one in here if not one.marker or one.marker.evaluate()}
    assert {canonicalize_name(one.name) for one in here} == expected
    assert [str(one) for one in here if not one.specifier.contains(metadata.version(one.name))] == []


def test_the_lock_has_hashes_and_fits_pyproject():
    """Each version has hashes, none names where its files come from, and what pyproject.toml asks for is locked."""
    text = (DEPLOY.parent / "requirements.lock").read_text("utf-8")
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    versions = {
        one: re.findall(rf"^{one}==(\S+)", text, re.MULTILINE)
        for one in (canonicalize_name(Requirement(a).name) for a in asked)
    }
    assert [
        line
        for line in asked
        if not any(map(Requirement(line).specifier.contains, versions[canonicalize_name(Requirement(line).name)]))
    ] == []
    assert [name for name, _, block in lock.entries(text) if "--hash=sha256:" not in block] == []
    assert not re.search(r"https?://|--index-url", text)


def test_a_package_that_the_lock_lacks_is_named():
    with pytest.raises(SystemExit, match=r"requirements.lock lacks torch: run make lock"):
        lock.locked(["torch"])
    with pytest.raises(SystemExit, match=r"pyproject.toml has no extra nope. It has: embedded, "):
        lock.locked([".[nope]"])
