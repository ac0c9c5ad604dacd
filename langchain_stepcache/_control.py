"""What one call asks of the cache, taken out of LangChain's arguments and configuration.

``model.invoke(text, stepcache={"tags": "daily"})`` and
``chain.invoke(text, {"configurable": {"stepcache": "bypass"}})`` say the same kind of thing; where
both speak, the argument's fields come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.utils.function_calling import convert_to_json_schema
from pydantic import BaseModel

from stepcache import Control

__all__ = ["KEY", "Asked", "configured", "merged", "noted", "taken"]

KEY = "stepcache"
"""Name of the argument and of the configurable; it never reaches the wrapped model."""

_FORMAT = "ls_structured_output_format"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call's wishes, read, on their way from the public method to the one that answers."""

    control: Control = field(default_factory=Control)
    schema: Mapping[str, Any] | None = None
    """JSON Schema behind ``json_mode``, which LangChain takes away before the model is asked."""


def noted(config: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments with everything that concerns the cache under one key.

    Raises:
        UsageError: A wish that does not exist.
    """
    given = kwargs.get(KEY)
    if isinstance(given, Asked):
        return kwargs
    control = merged(configured(config), given)
    schema = _json_mode_schema(kwargs)
    if control is None and schema is None:
        return kwargs
    return {**kwargs, KEY: Asked(control=control or Control(), schema=schema)}


def taken(kwargs: dict[str, Any]) -> tuple[Asked, dict[str, Any]]:
    """The call's wishes, and the arguments that are the model's."""
    if KEY not in kwargs:
        return Asked(), kwargs
    rest = dict(kwargs)
    given = rest.pop(KEY)
    return given if isinstance(given, Asked) else Asked(control=Control.of(given)), rest


def configured(config: Any = None) -> Any:
    """What the call's configuration says, or that of the chain around it."""
    configurable = config.get("configurable") if config else None
    if configurable is None:
        around = var_child_runnable_config.get()
        configurable = around.get("configurable") if around else None
    return configurable.get(KEY) if configurable else None


def merged(configured: Any, given: Any) -> Control | None:
    """One control out of the configuration's and the argument's; None where neither speaks."""
    if configured is None or given is None:
        value = given if configured is None else configured
        return None if value is None else Control.of(value)
    if isinstance(configured, Mapping) and isinstance(given, Mapping):
        return Control.of({**configured, **given})
    return Control.of(given)


def _json_mode_schema(kwargs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    told, wanted = kwargs.get(_FORMAT), kwargs.get("response_format")
    if not isinstance(told, Mapping) or not isinstance(wanted, Mapping):
        return None
    schema = told.get("schema")
    if wanted.get("type") != "json_object" or schema is None:
        return None
    try:
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return schema.model_json_schema()
        return convert_to_json_schema(schema)
    except Exception:  # noqa: BLE001 - a schema that cannot be read stays unread
        return None
