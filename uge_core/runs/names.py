"""What a run is called: its method, its settings in words, and its place in a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from uge_core import registry
from uge_core.debias.base import Method
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig

EXTERNAL = "external"
"""The method of a run whose embedding came from elsewhere."""


def method_class(name: str) -> type[Method]:
    """The method that made a run; one this version does not have keeps its name and a neutral look."""
    if name in registry.names("debias.methods"):
        method: type[Method] = registry.find("debias.methods", name)
        return method
    return type("Foreign", (Method,), {"label": name})


def config_parts(config: Mapping[str, Any], *, typed: bool = True) -> dict[str, str]:
    """A run's config in words, by field, empty where it does not apply.

    Args:
        config: the record of a `RunConfig`.
        typed: names as they are typed in commands; else the method's label.
    """
    method, lam = config.get("method", ""), config.get("lambda")
    penalty = "" if lam is None else f" {'lambda' if typed else 'λ'} {lam:g}"
    return {
        "backbone": config.get("backbone", ""),
        "method": (method if typed else method_class(method).label) + penalty,
        "file": config.get("file", ""),
        "sensitive": "+".join(config.get("sensitive", ())),
        "dim": f"dim {config['dim']}" if "dim" in config else "",
        "seed": f"seed {config['seed']}" if "seed" in config else "",
        "split": "" if config.get("split_seed") is None else f"split {config['split_seed']}",
        "epochs": f"{config['epochs']} epochs" if "epochs" in config else "",
    }


def config_words(config: Mapping[str, Any], *fields: str, typed: bool = True, joint: str = ", ") -> str:
    """Some `fields` of `config_parts` in one line; all of them where none is named."""
    parts = config_parts(config, typed=typed)
    return joint.join(parts[f] for f in fields or parts if parts[f])


def labels(runs: Sequence[StoredRun]) -> dict[str, str]:
    """A short name per run id, told apart where two would read the same: method, lambda, what was treated."""
    parts = {run.id: {"dataset": run.dataset["name"]} | config_parts(run.config, typed=False) for run in runs}
    differing = [
        field
        for field in ("dataset", "backbone", "dim", "seed", "split", "epochs")
        if len({p[field] for p in parts.values()}) > 1
    ]
    names = {
        i: " · ".join(filter(None, (p[f] for f in ("method", "file", "sensitive", *differing))))
        for i, p in parts.items()
    }
    for settings in settings_apart({run.id: run.config for run in runs}, names), {i: [i[:6]] for i in names}:
        count = Counter(names.values())
        names = {i: " · ".join([n, *settings[i][:3]]) if count[n] > 1 else n for i, n in names.items()}
    return names


_NO_SETTING = {"lambda", "seed", "warm_from", "warm_epochs", "method", "file", "sensitive"}


def settings_apart(configs: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """By key, the settings in which runs of one name differ, as "score distance"; none where a name stands once."""
    alike: dict[str, list[str]] = {}
    for key, name in names.items():
        alike.setdefault(name, []).append(key)
    out: dict[str, list[str]] = {key: [] for key in names}
    for keys in alike.values():
        flat = {key: _flat(configs[key]) for key in keys} if len(keys) > 1 else {}
        for field in sorted({f for settings in flat.values() for f in settings} - _NO_SETTING):
            if len({settings.get(field) for settings in flat.values()}) > 1:
                for key in keys:
                    out[key] += [f"{field.rsplit('.', 1)[-1]} {flat[key][field]}"] if field in flat[key] else []
    return out


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = str(value)
    return out


def run_order(run: StoredRun) -> tuple[Any, ...]:
    """What runs are sorted by wherever they are listed: data, backbone, method, attributes, lambda, seed."""
    c = run.config
    return (
        run.dataset["name"],
        c["backbone"],
        c["split_seed"] or 0,
        method_class(c["method"]).position,
        c["method"],
        c["sensitive"],
        c["lambda"] or 0.0,
        c.get("seed", 0),
        run.id,
    )


def run_words(config: RunConfig) -> str:
    """A run as progress names it."""
    return config_words(config.to_json(), "backbone", "method", "sensitive")
