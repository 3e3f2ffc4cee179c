"""A method as a table lists it, and as it is typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uge_core.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    """A method with its lambda and its own settings, as the table lists it."""

    method: str
    lam: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Entry:
        """From "uge-c", "uge-c:1.9" or "uge-ork:1:num_features=512".

        Raises:
            ConfigError: the lambda is no number, or a setting is given twice.
        """
        method, *parts = text.split(":")
        lam = parts.pop(0) if parts and "=" not in parts[0] else ""
        form = "write METHOD, METHOD:LAMBDA or METHOD:LAMBDA:KEY=VALUE, as uge-c:0.5"
        options: dict[str, str] = {}
        for part in parts:
            key, equals, value = part.partition("=")
            if not (key and equals) or key in options:
                raise ConfigError(f"{text!r}: {part!r} is no setting, or is given twice; {form}")
            options[key] = value
        try:
            return cls(method, float(lam) if lam else None, options)
        except ValueError as error:
            raise ConfigError(f"{text!r}: {lam!r} is no lambda; {form}") from error
