"""YAML that people write and strangers hand over: the safe loader, stricter."""

from __future__ import annotations

from typing import Any

import yaml


class StrictLoader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
    """The safe loader without aliases, which can unpack into too much, and without repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node that is no alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not allowed", problem_mark=self.peek_event().start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """A mapping whose keys stand once."""
        seen: set[str] = set()
        for key, _ in node.value:
            # A key that is a list or a mapping is refused below.
            if isinstance(key.value, str):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)
