"""Reports as one HTML page that loads nothing: no request, no font, and no script but one of its own.

`ingestion` and `eval` call it with templates of their own; it imports nothing of ours. `templates/parts.html` has the
parts of a page: sections, tiles, tables, and charts as SVG.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(package: str, template: str, *, script: str = "", masked: Callable[[str], str] = str, **values: Any) -> str:
    """The page that a template in `templates/` of this package makes of the values.

    Every value is escaped, and before that goes through `masked`. `script` names a file beside the template; the page's
    policy lets this script run and no other.
    """
    environment = _environment(package, masked)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if script:
        source = environment.get_template(script).render()
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
    return environment.get_template(template).render(policy=policy, script=script, **values)


@cache
def _environment(package: str, masked: Callable[[str], str]) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__name__)]),
        extensions=["jinja2.ext.do"],
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else masked(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
