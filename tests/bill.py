"""The bill of materials, `sbom.cdx.json`, with licences: what is installed, as cyclonedx-py finds it, and what app/static holds.

`python -m tests.bill` compares the environment with the committed bill; `--write` writes the bill of an environment with all extras.
A package without a licence, or with one that isn't allowed, fails both. `scope` says what ships: `required` is in the image,
`optional` in other extras, `excluded` is for development.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from deploy import lock

ROOT = Path(__file__).parents[1]
BILL = ROOT / "sbom.cdx.json"
# each part of an expression with AND has one of these
ALLOWED = re.compile(
    r"(?<![A-Z])(?:0BSD|Apache|BSD|CC0|CNRI|GPL-2\.0-only|ISC|LGPL-3\.0-only|MIT|MPL|Mozilla|PSF|Python-2|TCL|Zlib|Public Domain|Unlicense|Academic Free)"
)
# GPL only as a program of development, LGPL only as a library beside ours
ONLY = {"GPL-2.0-only": {"codespell"}, "LGPL-3.0-only": {"psycopg", "psycopg-binary"}}
# their metadata name none, or only "see LICENSE": read in the licence files of the packages
READ = {
    "axe-playwright-python": "MIT",
    "overrides": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "pypdfium2": "BSD-3-Clause AND Apache-2.0",
    "rich-click": "MIT",
    "tiktoken": "MIT",
}


def licences(component: dict[str, Any]) -> list[str]:
    """The licences of a component, by their SPDX names where the package gives these."""
    found = [
        one.get("expression") or one["license"].get("id") or one["license"]["name"]
        for one in component.get("licenses", [])
    ]
    found = [name.removeprefix("License :: ").removeprefix("OSI Approved :: ") for name in found]
    known = READ.get(component["name"])
    return sorted(found or ([known] if known else []))


def environment() -> dict[str, dict[str, Any]]:
    """What is installed beside us, by `name==version`."""
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--of",
        "JSON",
        "--output-reproducible",
        sys.executable,
    ]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    (image,) = re.findall(r"--only-deps '(.+)'", (ROOT / "deploy/Dockerfile").read_text("utf-8"))
    everything = set(
        lock.locked(
            [f".[{','.join(set(metadata.metadata('docs-assistant').get_all('Provides-Extra') or ()) - {'dev'})}]"]
        )
    )
    scopes = [("required", set(lock.locked([image]))), ("optional", everything)]
    found = {}
    for one in told["components"]:
        name = re.sub(r"[-_.]+", "-", one["name"]).lower()
        if name in {"docs-assistant", "pip"}:
            continue
        key = f"{name}=={one['version']}"
        scope = next((scope for scope, keys in scopes if key in keys), "excluded")
        found[key] = entry(name, one["version"], one["purl"], licences({**one, "name": name}), scope)
    return found


def bundled() -> dict[str, dict[str, Any]]:
    """The npm packages that are built into app/static."""
    packages = json.loads((ROOT / "frontend/package-lock.json").read_text("utf-8"))["packages"]
    found = {}
    for place, one in packages.items():
        if place and not one.get("dev"):
            name = place.removeprefix("node_modules/")
            found[f"npm:{name}=={one['version']}"] = entry(
                name, one["version"], f"pkg:npm/{name}@{one['version']}", [one["license"]], "required"
            )
    return found


def entry(name: str, version: str, purl: str, names: list[str], scope: str) -> dict[str, Any]:
    """A component of the bill."""
    told = [{"license": {"name": one}} for one in names]
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": purl,
        "bom-ref": purl,
        "scope": scope,
        "licenses": told,
    }


def refused(components: dict[str, dict[str, Any]]) -> list[str]:
    """What must not be installed: without a licence, or with one that isn't allowed."""
    out = []
    for key, one in components.items():
        names = [item["license"]["name"] for item in one["licenses"]]
        if not names:
            out.append(f"{key}: no licence is known")
        elif not any(all(map(ALLOWED.search, name.split(" AND "))) for name in names):
            out.append(f"{key}: {', '.join(names)} isn't allowed")
        out += [
            f"{key}: {name} isn't allowed here" for name in names if one["name"] not in ONLY.get(name, {one["name"]})
        ]
    return out


def differences(here: dict[str, dict[str, Any]], kept: list[dict[str, Any]]) -> list[str]:
    """What the committed bill says otherwise than the environment and the lock."""
    by_purl = {one["purl"]: one for one in kept}
    said = [f"{key} isn't in {BILL.name}, or otherwise" for key, one in here.items() if by_purl.get(one["purl"]) != one]
    versions = {key for name in entries() for key in name}
    for one in kept:
        if one["purl"].startswith("pkg:pypi/") and f"{one['name']}=={one['version']}" not in versions:
            said.append(f"{one['name']} {one['version']} of {BILL.name} isn't locked")
    return said


def entries() -> list[set[str]]:
    """The locked versions."""
    text = (ROOT / lock.LOCK).read_text("utf-8")
    return [{block.split()[0]} for _, _, block in lock.entries(text)]


def main() -> int:
    """Compare or write; 1 if something is refused or differs."""
    here = environment() | bundled()
    said = refused(here)
    if "--write" in sys.argv:
        told = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": list(here.values())}
        BILL.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    else:
        said += differences(here, json.loads(BILL.read_text("utf-8"))["components"])
    print(*said, f"{len(here)} packages compared with {BILL.name}: {len(said)} findings", sep="\n")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
