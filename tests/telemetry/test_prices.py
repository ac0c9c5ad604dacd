"""Money: a table of one's own, the published prices, and sums that keep spent and avoided apart."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from stepcache import ConfigurationError, Usage
from stepcache.telemetry import PriceTable, Saved, Savings, published_prices

USAGE = Usage(calls=1, prompt_tokens=1_000_000, completion_tokens=500_000)


def test_the_most_exact_row_is_taken() -> None:
    """An exact name before a prefix, the longer prefix before the shorter, then the default."""
    table = PriceTable(
        {
            "small": {"input": 1, "output": 2},
            "small*": {"input": 10, "output": 20},
            "small-2*": {"input": 100, "output": 200},
        },
        default={"input": 1000, "output": 2000},
    )
    assert [table(m, USAGE) for m in ("small", "small-1", "small-2b", "large", None)] == [
        *(2.0, 20.0, 200.0, 2000.0, 2000.0)
    ]
    assert PriceTable({"small": {"input": 1, "output": 2}})("large", USAGE) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.toml", '[models."small-*"]\ninput = 0.4\noutput = 1.6\n'),
        ("prices.json", '{"models": {"small-*": {"input": 0.4, "output": 1.6}}}'),
    ],
)
def test_a_table_is_read_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    """TOML and JSON hold the same."""
    (tmp_path / name).write_text(text)
    assert PriceTable.read(tmp_path / name)("small-1", USAGE) == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models = 3", "hold no table 'models'"),
        ("models = ", "cannot be read"),
        ("[models.m]\ninput = 1", "the price of 'm'"),
        ("[models.m]\ninput = -1\noutput = 1", "at least 0"),
        ("[models.m]\ninput = nan\noutput = 1", "at least 0"),
        ("[models.m]\ninput = true\noutput = 1", "at least 0"),
        ("[models]\nm = 1", "the price of 'm'"),
        ("default = 1\n[models]", "the price of 'default'"),
    ],
)
def test_a_table_that_cannot_work_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file or the row."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        PriceTable.read(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        PriceTable.read(tmp_path / "none.toml")


def test_published_prices_are_of_hosted_models() -> None:
    """A known model costs something, more for more; one of one's own has no price."""
    price = published_prices()
    one = price("gpt-4.1-mini", Usage(calls=1, prompt_tokens=1_000, completion_tokens=100))
    ten = price("gpt-4.1-mini", Usage(calls=1, prompt_tokens=10_000, completion_tokens=1_000))
    assert one is not None
    assert one > 0
    assert ten == pytest.approx(10 * one)
    assert price("gpt-4.1-mini", Usage()) == 0
    assert price("my-own-model-7", USAGE) is None
    assert price(None, USAGE) is None
    assert published_prices("openai")("gpt-4.1-mini", USAGE) is not None


def test_sums_keep_spent_and_avoided_apart(story: Any, face: Any) -> None:
    """A patched answer spends and avoids; neither is taken off the other."""
    table = PriceTable({"small-*": {"input": 1.0, "output": 10.0}})
    savings, free = Savings(table), Savings()
    outcomes = story.play(face, savings, free)
    total = savings.total
    assert total.requests == len(outcomes)
    assert total.spent == sum((o.spent for o in outcomes), Usage())
    assert total.avoided == sum((o.avoided for o in outcomes), Usage())
    assert total.money_spent == pytest.approx(table("small-1", total.spent))
    assert total.money_avoided == pytest.approx(table("small-1", total.avoided))
    assert total.money_avoided > 0
    assert sum(total.routes.values()) == total.requests
    assert total.unpriced == 0
    assert free.total.money_spent == 0
    assert total.as_dict()["avoided"] == total.avoided.as_dict()


def test_what_has_no_price_is_counted(story: Any) -> None:
    """Its money is in neither sum, and the sums say of how many answers that is so."""
    savings = Savings(PriceTable({"other": {"input": 1, "output": 1}}))
    outcomes = story.sync(savings)
    assert savings.total.unpriced == len(outcomes)
    assert savings.total.money_spent == 0


def test_a_price_that_raises_hurts_nobody(story: Any) -> None:
    """Not the answers, and not who listens beside."""

    def broken(model: str | None, usage: Usage) -> float:
        raise KeyError(model)

    savings = Savings()
    story.sync(Savings(broken), savings)
    assert savings.total.requests == len(story.texts)


def test_sums_of_many_threads() -> None:
    """No answer is lost between two that come at once."""
    savings = Savings()

    def add() -> None:
        for _ in range(500):
            savings.add("miss", Usage(calls=1, prompt_tokens=2), Usage(calls=1))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    spent = Usage(calls=4_000, prompt_tokens=8_000)
    assert savings.total == Saved(
        requests=4_000, spent=spent, avoided=Usage(calls=4_000), routes={"miss": 4_000}
    )


def test_nothing_is_loaded_before_it_is_named() -> None:
    """Without the extras: the rest works, and a listener that needs one says which."""
    program = """
import sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {'prometheus_client', 'opentelemetry', 'genai_prices'}:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Bare())
from stepcache import ConfigurationError
from stepcache import telemetry
for name in telemetry.__all__:
    getattr(telemetry, name)
telemetry.LogListener(), telemetry.Savings(), telemetry.TraceLog('/dev/null')
for make in (
    telemetry.PrometheusListener,
    telemetry.OpenTelemetryListener,
    telemetry.published_prices,
    telemetry.exposition,
    telemetry.metrics_app,
):
    try:
        make()
    except ConfigurationError as error:
        print(str(error).partition('pip install')[2])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "'stepcache[metrics]'",
        "'stepcache[metrics]'",
        "'stepcache[prices]'",
        "'stepcache[metrics]'",
        "'stepcache[metrics]'",
    ]
