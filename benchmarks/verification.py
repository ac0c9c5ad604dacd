"""What it costs to parse, compare and verify: medians, 99th percentiles, growth with length.

Times are CPU times of this process, so that other work on the machine counts little. "Cold" means
that nothing of the answer was read before: what the tasks remember is emptied before each run.

Usage: python benchmarks/verification.py [--runs N]
"""

from __future__ import annotations

import argparse
import json
import string
import time
from collections.abc import Callable, Sequence
from itertools import islice, product
from statistics import median, quantiles

from stepcache._types import Constraints, Message, Request, Step
from stepcache.protocols import Task
from stepcache.tasks.json_answer import JsonAnswerTask
from stepcache.tasks.linear_equation import LinearEquationTask
from stepcache.tasks.linear_equation import _parse as linear_parse
from stepcache.tasks.linear_equation import _scan as linear_scan

LINEAR, JSON = LinearEquationTask(), JsonAnswerTask()

WORKED = r"""To solve \(4x + 7 = 31\) for \(x\), we isolate the unknown on the left side.

1. **Start** with the equation as it is given:
   \[
   4x + 7 = 31
   \]

2. **Move the constant**: subtract 7 from both sides of the equation.
   \[
   4x + 7 - 7 = 31 - 7
   \]
   This simplifies to \(4x = 24\).

3. **Isolate the unknown**: divide both sides by 4.
   \[
   \frac{4x}{4} = \frac{24}{4}
   \]

4. **Result**: \(x = 6\).

Check: 4(6) + 7 = 24 + 7 = 31. The solution is \(\boxed{6}\).
"""
OBJECT = json.dumps(
    {
        "name": "Ann Lee",
        "age": 41,
        "city": "Rome",
        "languages": ["it", "en"],
        "active": True,
        "score": 4.5,
    },
    indent=2,
)
ASKED = "Describe Ann Lee as a JSON object with keys name, age, city, languages, active and score"


def request(text: str) -> Request:
    """A request of one user message."""
    return Request(messages=(Message(role="user", text=text),))


def constraints(task: Task, text: str) -> Constraints:
    """What the task reads; the texts here are ones it reads."""
    parsed = task.parse(request(text))
    if not isinstance(parsed, Constraints):
        raise SystemExit(f"not read: {parsed}")
    return parsed


def forget() -> None:
    """Empty what the linear task remembers of texts and expressions."""
    linear_scan._remembered.cache_clear()
    linear_parse._READ.clear()
    linear_parse._number.cache_clear()


def measure(work: Callable[[], object], runs: int) -> list[float]:
    """CPU milliseconds of each run, everything forgotten before it."""
    times: list[float] = []
    work()
    for _ in range(runs):
        forget()
        began = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - began) / 1e6)
    return times


def show(name: str, times: Sequence[float]) -> None:
    """One line: p50 and p99."""
    print(f"{name:<58} p50 {median(times):8.3f} ms   p99 {quantiles(times, n=100)[98]:8.3f} ms")


def candidate(task: Task, old_text: str, new_text: str, answer: str) -> Callable[[], object]:
    """What one request and one candidate cost: parse, compare, verify every step."""
    old = constraints(task, old_text)
    steps = task.segment(answer)

    def work() -> object:
        new = constraints(task, new_text)
        return task.differences(old, new), [task.verify(step, new) for step in steps]

    return work


def everyday(runs: int) -> None:
    """A worked answer of six steps, and an object of six keys."""
    for task, old, new, answer in (
        (LINEAR, "Solve 4x + 7 = 31 for x.", "Find x if 4x + 7 = 31.", WORKED),
        (JSON, ASKED, f"Please {ASKED[0].lower()}{ASKED[1:]}.", OBJECT),
    ):
        steps = task.segment(answer)
        what = f"{task.name}: {len(steps)} steps, {len(answer)} characters"
        show(f"{what}, parse + compare + verify", measure(candidate(task, old, new, answer), runs))
        demand = constraints(task, new)
        show(f"{what}, check", measure(lambda t=task, s=steps, d=demand: t.check(s, d), runs))


def growth() -> None:
    """Time per kilobyte as answers grow to 100 kB; linear when it stays the same."""
    demand = constraints(LINEAR, "Solve 4x + 7 = 31 for x.")
    keyed = constraints(JSON, "Describe Ann as JSON with keys name, notes")
    for size in (6_250, 12_500, 25_000, 50_000, 100_000):
        long_answer = (WORKED * (size // len(WORKED) + 1))[:size]
        steps = LINEAR.segment(long_answer)
        one = Step(index=0, text=long_answer[:size])
        notes = json.dumps({"name": "Ann", "notes": ["a note of some length"] * (size // 25)})
        for name, work in (
            ("linear, many steps", lambda s=steps: [LINEAR.verify(step, demand) for step in s]),
            ("linear, one step", lambda s=one: LINEAR.verify(s, demand)),
            ("json", lambda t=notes: JSON.check(JSON.segment(t), keyed)),
        ):
            spent = median(measure(work, 5))
            print(f"{name:<22} {size:>7} B {spent:9.2f} ms {1_000 * spent / size:8.3f} ms/kB")


def hostile() -> None:
    """Inputs made to be slow: each is to be declined or judged within 50 ms."""
    demand = constraints(LINEAR, "Solve 4x + 7 = 31 for x.")
    keyed = constraints(JSON, "Describe Ann as JSON with keys name, age")
    names = ("".join(letters) for letters in product(string.ascii_lowercase, repeat=4))
    keys = "{" + ",".join(f'"{name}":1' for name in islice(names, 100_000)) + "}"
    texts = {
        "nested parentheses, 10^5": "(" * 50_000 + "x" + ")" * 50_000 + " = 1",
        "digits, 10^6": "1" * 1_000_000,
        "keys, 10^5": keys,
        "equals signs, 10^5": "=" * 100_000,
        "numbers, 33,000": "1, " * 33_000,
        "nested brackets, 10^5": "[" * 100_000,
        "quotes, 10^5": '"' * 100_000,
        "a JSON prompt of 100 kB": "Return JSON with keys a, b for: "
        + "text of some kind. " * 5_200,
    }
    for name, text in texts.items():
        steps = JSON.segment(text)
        for what, work in (
            ("linear parse", lambda t=text: LINEAR.parse(request(t))),
            ("linear verify", lambda t=text: LINEAR.verify(Step(index=0, text=t), demand)),
            ("json parse", lambda t=text: JSON.parse(request(t))),
            ("json segment", lambda t=text: JSON.segment(t)),
            ("json check", lambda s=steps: JSON.check(s, keyed)),
        ):
            spent = median(measure(work, 5))
            flag = "" if spent <= 50 else "   over 50 ms"
            print(f"{name:<26} {what:<14} {spent:9.2f} ms{flag}")


def main() -> None:
    """Print all three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="runs of the everyday cases")
    everyday(parser.parse_args().runs)
    growth()
    hostile()


if __name__ == "__main__":
    main()
