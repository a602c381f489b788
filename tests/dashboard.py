"""A Grafana dashboard as TypeScript, for the compiler to compare with the types that Grafana publishes of its schema."""

import json
from collections.abc import Mapping
from typing import Any

CONFIGS = {"timeseries": "TimeSeriesPanelCfg", "stat": "StatPanelCfg", "state-timeline": "StateTimelinePanelCfg"}

# an enum of TypeScript takes no literal, which is all that JSON has: its values do
PLAIN = """
type Plain<T> = T extends boolean ? T : T extends string ? `${T}` : T extends number ? number
  : T extends (infer Item)[] ? Plain<Item>[] : T extends object ? { [Key in keyof T]: Plain<T[Key]> } : T;
"""


def typed(dashboard: Mapping[str, Any]) -> str:
    """A program that compiles if the dashboard, and the options of each of its panels, have the right types."""
    lines = ['import type { Dashboard } from "@grafana/schema";']
    for kind, name in CONFIGS.items():
        folder = kind.replace("-", "")
        place = f"@grafana/schema/dist/esm/raw/composable/{folder}/panelcfg/x/{name}_types.gen"
        lines.append(f'import type * as {folder} from "{place}";')
    lines += [PLAIN, f"export const dashboard: Plain<Dashboard> = {json.dumps(dashboard)};"]
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            continue
        kind, number = panel["type"].replace("-", ""), panel["id"]
        lines.append(f"export const o{number}: Plain<{kind}.Options> = {json.dumps(panel['options'])};")
        if custom := panel["fieldConfig"]["defaults"].get("custom"):
            lines.append(f"export const c{number}: Plain<Partial<{kind}.FieldConfig>> = {json.dumps(custom)};")
    return "\n".join(lines)
