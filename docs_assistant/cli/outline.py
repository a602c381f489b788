"""Values as YAML for people. Apart from what all commands share, because importing PyYAML takes .01 s."""

import math
from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]


def outline(content: object) -> str:
    """The same as YAML for people, without what is empty."""
    text: str = yaml.dump(_filled(content), Dumper=_Outline, sort_keys=False, allow_unicode=True, width=math.inf)
    return text


def _filled(value: Any) -> Any:
    """The value without the parts of it that are empty."""
    match value:
        case Mapping():
            filled = {name: _filled(part) for name, part in value.items()}
            return {name: part for name, part in filled.items() if part not in (None, "", [], {})}
        case list() | tuple():
            return [_filled(part) for part in value]
    return value


class _Outline(yaml.SafeDumper):  # type: ignore[misc]  # yaml isn't typed
    """Writes what has no parts on one line, and texts of several lines as they are."""

    def represent_str(self, text: str) -> Any:
        """The text; as a block if it has several lines, and with no quotation mark of its own doubled."""
        style = "|" if "\n" in text else '"' if "'" in text and '"' not in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
        """The values by name."""
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = not any(
            isinstance(value, yaml.CollectionNode) or value.style == "|" for _, value in node.value
        )
        return node


_Outline.add_representer(str, _Outline.represent_str)
