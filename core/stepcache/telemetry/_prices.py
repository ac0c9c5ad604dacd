"""What tokens cost: a function, a table of one's own, or the table the ``genai-prices`` package
keeps up to date."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from stepcache._errors import ConfigurationError
from stepcache._types import Outcome, Usage

__all__ = ["Money", "Price", "PriceTable", "priced", "published_prices"]

Price: TypeAlias = Callable[[str | None, Usage], float | None]
"""From a model's name and its usage to money; None where the model has no known price."""

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What one answer cost and what it would have cost more, in the currency of the prices."""

    spent: float
    avoided: float


def priced(outcome: Outcome, price: Price | None) -> Money | None:
    """The money of one outcome; None without prices, or where the model has none."""
    if price is None:
        return None
    spent, avoided = price(outcome.model, outcome.spent), price(outcome.model, outcome.avoided)
    if spent is None or avoided is None:
        return None
    return Money(spent=float(spent), avoided=float(avoided))


class PriceTable:
    """Prices per million tokens, by model; a :data:`Price`.

    Args:
        models: For each model ``{"input": ..., "output": ...}``. A name that ends in ``*`` stands
            for all that begin so; the longest that fits is taken, an exact one before all.
        default: The same for all other models; None leaves them without a price.

    Raises:
        ConfigurationError: A price is not a number of at least 0.

    Example:
        >>> table = PriceTable({"small-*": {"input": 0.4, "output": 1.6}})
        >>> table("small-2", Usage(calls=1, prompt_tokens=1_000_000, completion_tokens=500_000))
        1.2
    """

    def __init__(
        self,
        models: Mapping[str, Mapping[str, float]],
        *,
        default: Mapping[str, float] | None = None,
    ) -> None:
        self._exact: dict[str, tuple[float, float]] = {}
        self._prefixes: dict[str, tuple[float, float]] = {}
        for name, row in models.items():
            if name.endswith("*"):
                self._prefixes[name[:-1]] = _row(name, row)
            else:
                self._exact[name] = _row(name, row)
        self._default = _row("default", default) if default is not None else None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PriceTable:
        """Read a table from a TOML or JSON file: a table ``models``, and perhaps ``default``.

        Raises:
            ConfigurationError: The file is missing, is neither, or holds something else.
        """
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
            told: Any = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"the prices {str(file)!r} cannot be read: {why}") from error
        if not isinstance(told, dict) or not isinstance(told.get("models"), dict):
            raise ConfigurationError(
                f"the prices {str(file)!r} hold no table 'models': write e.g. "
                '[models."gpt-4.1-mini"], then input = 0.40 and output = 1.60 (per million tokens)'
            )
        return cls(told["models"], default=told.get("default"))

    def __call__(self, model: str | None, usage: Usage, /) -> float | None:
        row = self._find(model or "")
        if row is None:
            return None
        return (usage.prompt_tokens * row[0] + usage.completion_tokens * row[1]) / _MILLION

    def _find(self, model: str) -> tuple[float, float] | None:
        if model in self._exact:
            return self._exact[model]
        fitting = [prefix for prefix in self._prefixes if model.startswith(prefix)]
        return self._prefixes[max(fitting, key=len)] if fitting else self._default


def published_prices(provider: str | None = None) -> Price:
    """The prices of hosted models, in US dollars, as the ``genai-prices`` package lists them.

    Args:
        provider: Whose prices, e.g. ``"openai"``; None finds it by the model's name.

    Raises:
        ConfigurationError: The package is not installed.
    """
    try:
        import genai_prices
    except ImportError as error:
        raise ConfigurationError(
            f"published_prices needs genai-prices ({error}): pip install 'stepcache[prices]'"
        ) from error

    def price(model: str | None, usage: Usage, /) -> float | None:
        if not model:
            return None
        counted = genai_prices.Usage(
            input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens
        )
        try:
            found = genai_prices.calc_price(counted, model, provider_id=provider)
        except LookupError:
            return None
        return float(found.total_price)

    return price


def _row(name: str, row: object) -> tuple[float, float]:
    prices = []
    for side in ("input", "output"):
        value = row.get(side) if isinstance(row, Mapping) else None
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(float(value or 0)) or float(value or 0) < 0:
            raise ConfigurationError(
                f"the price of {name!r} is {row!r}: "
                "give 'input' and 'output' as money per million tokens, at least 0"
            )
        prices.append(float(value or 0))
    return prices[0], prices[1]
