"""The matrix: scene x driver x exchange x fault x store, each cell one trial."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from stepcache import Control, Outcome, Policy, Reply, StepCacheEngine
from stepcache.embedders import LexicalEmbedder
from trust.faults._ports import FAULTS, Plan, backend_for, embedder_for, store_for
from trust.faults._scenes import SCENES, Scene, answer_to

__all__ = ["DRIVERS", "Matrix", "run_matrix"]

DRIVERS = (
    *("resolve", "stream", "lookup", "admit", "many"),
    *("aresolve", "astream", "alookup", "aadmit"),
    *("aresolve/async ports", "astream/async ports", "alookup/async ports"),
)
_STOPS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")
"""These are the user's, or the interpreter's: they pass through whatever is going on."""
_BUDGET = 0.05
_EMBEDDER = LexicalEmbedder()
_SHOWN = 12


@dataclass(slots=True, kw_only=True)
class Matrix:
    """What the trials came to."""

    store: str
    flows: int = 0
    """Recorded flows: a scene under a driver."""
    exchanges: int = 0
    """Exchanges with a port in all of them: the places where a fault can be."""
    trials: int = 0
    violations: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    """How the trials ended: the right answer, the model's own words, an error that is not ours."""
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)

    def end(self, told: str) -> None:
        """Count one."""
        self.ends[told] = self.ends.get(told, 0) + 1

    def violate(self, told: str) -> None:
        """Count one that should not be."""
        self.violations += 1
        if len(self.found) < _SHOWN:
            self.found.append(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    scene: Scene
    driver: str
    inner: Any
    healthy: StepCacheEngine
    """Over the same store, to fill it by."""
    namespace: str

    @property
    def asynchronous(self) -> bool:
        """Whether the ports are."""
        return self.driver.endswith("async ports")

    def engine(self, plan: Plan) -> StepCacheEngine:
        """An engine over the shared store, with ports that obey a plan."""
        budget = _BUDGET if plan.fault == "hangs" else None
        return StepCacheEngine(
            store=store_for(self.inner, plan, asynchronous=self.asynchronous),
            embedder=embedder_for(_EMBEDDER, plan, asynchronous=self.asynchronous),
            policy=Policy(max_embed_seconds=budget or 30.0, max_store_seconds=budget, max_wait=0.2),
        )

    def warm(self) -> None:
        """Fill the namespace as the scene wants it."""
        backend = backend_for(answer_to(self.scene), Plan(), asynchronous=False)
        for text in self.scene.before:
            self.healthy.resolve(self.scene.request(text, self.namespace), backend=backend)

    def ask(self, engine: StepCacheEngine, plan: Plan, driver: str) -> Any:
        """Run the driver; an outcome, an entry's id, or whatever it raises."""
        scene = self.scene
        request = scene.request(scene.asked, self.namespace)
        backend = backend_for(answer_to(scene), plan, asynchronous=self.asynchronous)
        control = Control(bypass=scene.bypass)
        reply = Reply(text=answer_to(scene)(_whole(request)).text)
        kind = driver.partition("/")[0]
        match kind:
            case "resolve" | "lookup":
                return getattr(engine, kind)(request, backend=backend, control=control)
            case "stream":
                return _joined(list(engine.stream(request, backend=backend, control=control)))
            case "many":
                several = [request, scene.request(scene.asked, self.namespace)]
                return engine.resolve_many(several, backend=backend, control=control)[-1]
            case "admit":
                return engine.admit(request, reply, control=control)
            case "aresolve" | "alookup":
                call = getattr(engine, kind)(request, backend=backend, control=control)
                return asyncio.run(call)
            case "aadmit":
                return asyncio.run(engine.aadmit(request, reply, control=control))
            case _:
                return asyncio.run(_astream(engine, request, backend, control))


def _whole(request: Any) -> Any:
    from stepcache import ModelCall

    return ModelCall(purpose="answer", messages=request.messages)


async def _astream(engine: Any, request: Any, backend: Any, control: Any) -> Any:
    pieces = [p async for p in engine.astream(request, backend=backend, control=control)]
    return _joined(pieces)


def _joined(pieces: list[Any]) -> Outcome:
    """A stream's outcome, if what was shown is what it says.

    Raises:
        AssertionError: Something else was shown.
    """
    *shown, outcome = pieces
    text = "".join(piece.text for piece in shown)
    if text != outcome.text:
        raise AssertionError(f"shown {text!r}, told {outcome.text!r}")
    return outcome  # type: ignore[no-any-return]


def run_matrix(
    name: str,
    inner: Any,
    *,
    share: float,
    seed: int,
    progress: Callable[[str], None] = lambda told: None,
) -> Matrix:
    """Run the trials on one store.

    Args:
        inner: The healthy store below; every trial has a namespace of its own in it.
        share: Portion of the cells to try; 1 tries all of them.
    """
    matrix = Matrix(store=name)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it tells of every stop we let through
    numbers = itertools.count()
    engine = StepCacheEngine(store=inner, embedder=_EMBEDDER)
    dice = Random(f"{seed}/faults/{name}")
    began = time.perf_counter()
    for scene, driver in itertools.product(SCENES, DRIVERS):
        first = _Trial(
            scene=scene, driver=driver, inner=inner, healthy=engine, namespace=f"t{next(numbers)}"
        )
        healthy = _recorded(matrix, first)
        matrix.flows += 1
        matrix.exchanges += len(healthy)
        for at, fault in _cells(healthy, driver):
            if dice.random() >= share:
                continue
            trial = replace(first, namespace=f"t{next(numbers)}")
            _try(matrix, trial, Plan(at=at, fault=fault), healthy[at])
        if driver == DRIVERS[-1]:
            progress(f"{name}: {scene.name}: {matrix.trials} trials")
    matrix.seconds = time.perf_counter() - began
    return matrix


def _recorded(matrix: Matrix, trial: _Trial) -> list[str]:
    """The exchanges of the healthy flow."""
    trial.warm()
    scene, driver, plan = trial.scene, trial.driver, Plan()
    outcome = trial.ask(trial.engine(plan), plan, driver)
    told = f"{scene.name}/{driver}/{matrix.store}, healthy"
    if isinstance(outcome, Outcome) and driver != "many":
        if "lookup" not in driver and outcome.route != scene.route:
            matrix.violate(f"{told}: went {outcome.route}, not {scene.route}")
        if outcome.served and not scene.acceptable(outcome.text):
            matrix.violate(f"{told}: {outcome.text!r}")
    return plan.calls


def _cells(exchanges: list[str], driver: str) -> Iterator[tuple[int, str]]:
    faults = (*FAULTS, "waits for ever") if driver.endswith("async ports") else FAULTS
    for at, name in enumerate(exchanges):
        for fault in faults:
            if fault == "raises StopAsyncIteration" and name.startswith("model"):
                continue  # a stream that raises it has ended
            if fault == "hangs" and (name.startswith("model") or driver == "many"):
                continue  # the model is waited for, as without a cache
            if "vector" in fault and name != "embedder.embed":
                continue
            if "entry" in fault and not name.startswith("store."):
                continue
            yield at, fault


def _try(matrix: Matrix, trial: _Trial, plan: Plan, exchange: str) -> None:
    trial.warm()
    engine = trial.engine(plan)
    matrix.trials += 1
    told = f"{trial.scene.name}/{trial.driver}/{matrix.store}: {exchange} {plan.fault}"
    try:
        if plan.fault == "waits for ever":
            asyncio.run(_cancelled(trial, engine, plan))
            matrix.end("cancelled, as asked")
        else:
            result = trial.ask(engine, plan, trial.driver)
            problem = _problem(trial, result)
            if problem:
                matrix.violate(f"{told}: {problem}")
            else:
                matrix.end("the right answer or the model's own")
    except BaseException as error:
        if _theirs(exchange, plan.fault, error):
            matrix.end("the fault's own error passed through")
        else:
            matrix.violate(f"{told}: raised {type(error).__name__}: {error}")
    _afterwards(matrix, trial, engine, plan, told)


def _problem(trial: _Trial, result: Any) -> str:
    """What is wrong with a result; nothing when it may be."""
    if "admit" in trial.driver:
        return "" if result is None or isinstance(result, str) else f"gave {result!r}"
    if not isinstance(result, Outcome):
        return f"gave {type(result).__name__}"
    if not result.served:
        return "" if "lookup" in trial.driver else "was not answered"
    return "" if trial.scene.acceptable(result.text) else f"served {result.text!r}"


def _theirs(exchange: str, fault: str, error: BaseException) -> bool:
    """Whether an error is none of the cache's: the model's, or a stop that passes through."""
    cause = error.__cause__ if isinstance(error, RuntimeError) else None
    # What Python makes of a StopIteration that leaves a coroutine.
    name = type(cause if isinstance(cause, StopIteration) else error).__name__
    if any(stop in fault for stop in _STOPS):
        return name in fault
    if not exchange.startswith("model.answer"):
        return False
    # What is no reply is the model's fault too, and is told as an error.
    return name in fault or not fault.startswith("raises")


def _afterwards(
    matrix: Matrix, trial: _Trial, engine: StepCacheEngine, plan: Plan, told: str
) -> None:
    """Nothing is stuck, and nothing bad was kept: the same request is answered rightly now."""
    plan.at, plan.fault = None, ""
    if len(engine._flights):
        matrix.violate(f"{told}: a flight is still under way")
    with suppress(Exception):
        engine._flights._flights.clear()
    try:
        driver = "aresolve/async ports" if trial.asynchronous else "resolve"
        again = trial.ask(engine, plan, driver)
    except BaseException as error:
        matrix.violate(f"{told}: afterwards {type(error).__name__}: {error}")
        return
    if not trial.scene.acceptable(again.text):
        matrix.violate(f"{told}: afterwards {again.text!r}")


async def _cancelled(trial: _Trial, engine: StepCacheEngine, plan: Plan) -> None:
    """Cancel a call while a port is being waited for; it must end as cancelled, and at once.

    Raises:
        AssertionError: It went on, or ended in another way.
    """
    scene = trial.scene
    request = scene.request(scene.asked, trial.namespace)
    backend = backend_for(answer_to(scene), plan, asynchronous=True)
    control = Control(bypass=scene.bypass)
    reached = asyncio.Event()
    plan.waiting = reached.set
    kind = trial.driver.partition("/")[0]
    if kind == "astream":
        call = _astream(engine, request, backend, control)
    else:
        call = getattr(engine, kind)(request, backend=backend, control=control)
    task = asyncio.ensure_future(call)
    waiter = asyncio.ensure_future(reached.wait())
    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    waiter.cancel()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=30)
    if not done:
        raise AssertionError("it could not be cancelled")
    if not task.cancelled():
        error = task.exception()
        if plan.struck and error is None:
            raise AssertionError("it swallowed its cancellation")
        if error is not None:
            raise error
