"""The JSON family, as an engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepcache._stitch import renumber
from stepcache._stitch import segment as segment_prose
from stepcache._types import (
    Block,
    Constraints,
    Declined,
    Difference,
    ModelCall,
    Request,
    Status,
    Step,
    Verdict,
)
from stepcache.tasks.json_answer._compare import compare
from stepcache.tasks.json_answer._edit import adapt_object, mended, patch_call, spliced
from stepcache.tasks.json_answer._extract import Found, extract
from stepcache.tasks.json_answer._request import read
from stepcache.tasks.json_answer._verify import check_whole, verify_json, verify_prose

__all__ = ["JsonAnswerTask"]


class JsonAnswerTask:
    """Answers that are one JSON value, verified and patched key by key.

    A request is of this family when it carries a JSON Schema, when its response format is JSON, or
    when its text plainly demands JSON. The whole value is one step; what stands around it is prose.
    """

    name = "json"
    version = "1"
    retrieves = True
    neutral: frozenset[str] = frozenset()
    """Empty: instruction words are neutral in their place only, and ``parse`` takes them out."""

    def parse(self, request: Request, /) -> Constraints | Declined:
        """Read keys, notes, shape, source and schema out of a request."""
        contract = request.contract
        if contract.opaque:
            return Declined(reason="the output contract cannot be read")
        named = (
            contract.schema is not None
            or request.task == self.name
            or _is_json_format(contract.response_format)
        )
        demand = read(request.text, named=named)
        if isinstance(demand, Declined):
            return demand
        schema = dict(contract.schema) if contract.schema is not None else demand.schema
        keys = list(dict.fromkeys([*demand.keys, *_required(schema)]))
        return Constraints(
            task=self.name,
            version=self.version,
            values={
                "keys": keys,
                "notes": demand.notes,
                "extras": demand.extras,
                "ordered": demand.ordered,
                "shape": demand.shape,
                "bare": demand.bare,
                "schema": schema,
                "source": demand.source,
                "quoted": list(demand.quoted),
            },
            spans=demand.spans,
            whole=demand.sure,
        )

    def segment(self, text: str, /) -> tuple[Step, ...]:
        """The JSON value with its fence as one step, the prose around it as any prose is cut."""
        found = extract(text)
        if not isinstance(found, Found):
            return segment_prose(text)
        stop = found.outer_stop
        while stop < len(text) and text[stop] in " \t\r\n":
            stop += 1
        steps = [
            *segment_prose(text[: found.outer_start]),
            Step(index=0, text=text[found.outer_start : stop], kind="json"),
            *segment_prose(text[stop:]),
        ]
        return renumber(steps)

    def differences(self, old: Constraints, new: Constraints, /) -> tuple[Difference, ...]:
        """Key by key and keyword by keyword; what no verifier can see has no owner."""
        return compare(old, new, self.name)

    def verify(self, step: Step, constraints: Constraints, /) -> Verdict:
        """A JSON step against keys and schema; prose must state nothing."""
        if step.kind == "json":
            return verify_json(step, constraints)
        return verify_prose(step, constraints)

    def check(self, steps: Sequence[Step], constraints: Constraints, /) -> Verdict:
        """Exactly one JSON value in the whole answer, satisfying keys and schema."""
        return check_whole(steps, constraints)

    def adapt(
        self, steps: Sequence[Step], old: Constraints, new: Constraints, /
    ) -> tuple[Step, ...] | None:
        """Keys dropped, one renamed, values coerced losslessly; None when a model is needed."""
        edits = adapt_object(steps, old, new)
        if edits is None:
            return None
        texts = dict(edits)
        kept = [
            Step(index=0, text=texts.get(i, step.text), kind=step.kind)
            for i, step in enumerate(steps)
            if texts.get(i, step.text)
        ]
        return renumber(kept) if kept else None

    def block(self, verdicts: Sequence[Verdict], /) -> Block | None:
        """The failing steps only: prose and JSON do not depend on each other."""
        failing = [i for i, v in enumerate(verdicts) if v.status is not Status.PASS]
        return Block(start=failing[0], stop=failing[-1] + 1) if failing else None

    def patch(
        self,
        request: Request,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> ModelCall | None:
        """Ask for the missing or wrong keys only, under their part of the schema."""
        return patch_call(request, steps, block, verdicts, constraints)

    def splice(
        self,
        reply: str,
        steps: Sequence[Step],
        block: Block,
        verdicts: Sequence[Verdict],
        constraints: Constraints,
        /,
    ) -> str | None:
        """The cached object with the asked keys merged in, its order, layout and fence kept."""
        return spliced(reply, steps, block, verdicts, constraints)

    def mend(self, text: str, constraints: Constraints, /) -> str | None:
        """Repair a damaged answer, or drop keys nobody asked for; nothing is made up."""
        return mended(text, constraints)

    def solve(self, constraints: Constraints, /) -> str | None:
        """None: what belongs under a key only the model knows."""
        return None


def _required(schema: Mapping[str, Any] | None) -> list[str]:
    required = schema.get("required") if schema else None
    if not isinstance(required, (list, tuple)):
        return []
    return [key for key in required if isinstance(key, str)]


def _is_json_format(response_format: Any) -> bool:
    if isinstance(response_format, Mapping):
        response_format = response_format.get("type")
    return response_format in ("json", "json_object", "json_schema")
