"""The JSON family of the workload: ten subjects to describe, and what may be changed about them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepcache.bench._items import Item, ObjectDemand, Split
from stepcache.bench._topics import KINDS, RENAMES, SCHEMAS, SOURCES, Kind, Source
from stepcache.bench._wordings import LEVELS, Voice

__all__ = ["JsonGroup", "json_extended", "json_extra_warm_up", "json_paper", "json_warm_up"]

BASES = 10
VARIANTS = 3
_KEYS_ADDED_BASES = 4
_RULES = (
    ("upper", "Write every string value in capital letters."),
    ("strings", "Give every value as a string."),
    ("short", "Use at most three words in each value."),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to describe under some keys."""

    kind: Kind
    name: str
    keys: tuple[str, ...]
    topic_key: str
    gone: tuple[str, ...] = ()
    """Keys that were asked for before and are not any more."""

    @property
    def thing(self) -> str:
        return self.kind.phrase.format(name=self.name)

    def demand(self, rule: str = "") -> ObjectDemand:
        """What a right answer must hold."""
        return ObjectDemand(
            required=self.keys,
            forbidden=self.gone,
            topic_key=self.topic_key if self.topic_key in self.keys else None,
            topic=self.name,
            rule=rule,
        )


class JsonGroup:
    """Writes items of one seed; no subject is used twice."""

    def __init__(self, seed: int, voice: Voice) -> None:
        self.seed = seed
        self.voice = voice
        self.random = random.Random(f"json {seed}")  # noqa: S311 - a workload, not a secret
        # By themselves, so that other wordings change nothing but the wordings.
        self.words = random.Random(f"json wordings {seed}")  # noqa: S311
        self.count = 0
        names = [(kind, name) for kind in KINDS for name in kind.names]
        self.random.shuffle(names)
        self.bases = [_subject(kind, name) for kind, name in names[:BASES]]
        self.others = names[BASES:]

    def item(
        self,
        split: Split,
        group: str,
        base: str,
        prompt: str,
        demand: ObjectDemand,
        *,
        must_not: bool = False,
    ) -> Item:
        self.count += 1
        return Item(
            id=f"{self.seed}/{split}/json/{self.count:03}",
            seed=self.seed,
            split=split,
            family="json",
            group=group,
            base=base,
            prompt=prompt,
            demand=demand,
            must_not=must_not,
        )

    def prompt(
        self, subject: Subject, *, wording: str | None = None, tail: str | None = None
    ) -> str:
        """A subject in a wording; the base wording without one."""
        head = (wording or self.voice.base).format(thing=subject.thing, **_slots(subject.keys))
        return f"{head} {tail or self.voice.tail}"


def _subject(kind: Kind, name: str) -> Subject:
    return Subject(kind, name, (kind.topic_key, *kind.keys[:3]), kind.topic_key)


def _slots(keys: Sequence[str]) -> dict[str, str]:
    return {
        "keys": ", ".join(keys),
        "keys_and": f"{', '.join(keys[:-1])} and {keys[-1]}" if len(keys) > 1 else keys[0],
        "keys_quoted": ", ".join(f'"{key}"' for key in keys),
    }


def json_warm_up(group: JsonGroup) -> Iterator[Item]:
    """The ten base prompts."""
    for index, base in enumerate(group.bases):
        yield group.item("warm-up", "base", f"json-{index}", group.prompt(base), base.demand())


def json_paper(group: JsonGroup) -> Iterator[Item]:
    """30 paraphrases of each level, and 12 prompts that require one key more."""
    for level in LEVELS:
        words = group.voice.levels[level]
        for index, base in enumerate(group.bases):
            for wording in group.words.sample(words.wordings, VARIANTS):
                tail = group.words.choice(words.tails)
                prompt = group.prompt(base, wording=wording, tail=tail)
                yield group.item(
                    "paper", f"paraphrase {level}", f"json-{index}", prompt, base.demand()
                )
    for index, base in enumerate(group.bases[:_KEYS_ADDED_BASES]):
        more = [key for key in base.kind.keys if key not in base.keys]
        for variant in range(VARIANTS):
            added = (more[variant],) if variant < len(more) else tuple(more)
            wider = replace(base, keys=(*base.keys, *added))
            prompt = group.prompt(wider)
            yield group.item("paper", "keys added", f"json-{index}", prompt, wider.demand())


def json_extra_warm_up(group: JsonGroup) -> Iterator[Item]:
    """Base prompts that only the extended split changes: with a schema, and with a source text."""
    for index in range(len(SCHEMAS)):
        prompt, demand = _schema_item(group, index, _schema(index))
        yield group.item("warm-up", "base with schema", f"schema-{index}", prompt, demand)
    for index, source in enumerate(SOURCES):
        prompt, demand = _source_item(group, source, source.rows[0])
        yield group.item("warm-up", "base with source", f"source-{index}", prompt, demand)


def json_extended(group: JsonGroup) -> Iterator[Item]:
    """Keys removed and renamed, types and enumerations changed; other topics, sources and value
    demands, which must not be served as they stand."""
    yield from _removed(group)
    yield from _renamed(group)
    yield from _types(group)
    yield from _topics(group)
    yield from _sources(group)
    yield from _rules(group)


def _removed(group: JsonGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        for key in base.kind.keys[:VARIANTS]:
            keys = tuple(k for k in base.keys if k != key)
            fewer = replace(base, keys=keys, gone=(key,))
            prompt = group.prompt(fewer)
            yield group.item("extended", "key removed", f"json-{index}", prompt, fewer.demand())


def _renamed(group: JsonGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        renamable = [key for key in base.keys if key in RENAMES]
        for key in group.random.sample(renamable, VARIANTS):
            new = RENAMES[key]
            keys = tuple(new if k == key else k for k in base.keys)
            topic_key = new if key == base.topic_key else base.topic_key
            changed = replace(base, keys=keys, topic_key=topic_key, gone=(key,))
            prompt = group.prompt(changed)
            yield group.item("extended", "key renamed", f"json-{index}", prompt, changed.demand())


def _schema(index: int) -> dict[str, Any]:
    _, _, choice, values, (count, word) = SCHEMAS[index]
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            choice: {"enum": list(values)},
            count: {"type": "integer"},
            word: {"type": "string"},
        },
        "required": ["name", choice, count, word],
        "additionalProperties": False,
    }


def _schema_item(
    group: JsonGroup, index: int, schema: Mapping[str, Any]
) -> tuple[str, ObjectDemand]:
    phrase, name, *_ = SCHEMAS[index]
    written = json.dumps(schema)
    head = f"Describe {phrase} as a JSON object that satisfies this JSON Schema: {written}"
    demand = ObjectDemand(
        required=tuple(schema["required"]), topic_key="name", topic=name, schema=schema
    )
    return f"{head}\n{group.voice.tail}", demand


def _types(group: JsonGroup) -> Iterator[Item]:
    for index, (_, _, choice, values, (count, word)) in enumerate(SCHEMAS):
        changes: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("type changed", count, {"type": "string"}),
            ("type changed", count, {"type": "number"}),
            ("type changed", word, {"type": "array", "items": {"type": "string"}}),
            ("type changed", word, {"type": ["string", "null"]}),
            ("enum changed", choice, {"enum": [*values, "unknown"]}),
            ("enum changed", choice, {"enum": [value.upper() for value in values]}),
        )
        for name, key, part in changes:
            schema = _schema(index)
            schema["properties"] = {**schema["properties"], key: part}
            prompt, demand = _schema_item(group, index, schema)
            yield group.item("extended", name, f"schema-{index}", prompt, demand)


def _topics(group: JsonGroup) -> Iterator[Item]:
    """Subjects of the base prompts' kinds first: those look most alike."""
    kinds = {base.kind.phrase: index for index, base in enumerate(group.bases)}
    alike = [one for one in group.others if one[0].phrase in kinds]
    unlike = [one for one in group.others if one[0].phrase not in kinds]
    for kind, name in [*alike, *unlike][: BASES * VARIANTS]:
        other = _subject(kind, name)
        yield group.item(
            "extended",
            "topic changed",
            f"json-{kinds.get(kind.phrase, 0)}",
            group.prompt(other),
            other.demand(),
            must_not=True,
        )


def _source_item(
    group: JsonGroup, source: Source, row: Sequence[str | int]
) -> tuple[str, ObjectDemand]:
    keys = ", ".join(source.keys)
    text = source.text.format(*row)
    prompt = f"Extract a JSON object with the keys {keys} from: {text}\n{group.voice.tail}"
    return prompt, ObjectDemand(
        required=source.keys, topic=text, values=dict(zip(source.keys, row))
    )


def _sources(group: JsonGroup) -> Iterator[Item]:
    for index, source in enumerate(SOURCES):
        for row in source.rows[1:]:
            prompt, demand = _source_item(group, source, row)
            yield group.item(
                "extended", "source changed", f"source-{index}", prompt, demand, must_not=True
            )


def _rules(group: JsonGroup) -> Iterator[Item]:
    for index, base in enumerate(group.bases):
        for rule, said in _RULES:
            prompt = group.prompt(base, tail=f"{said} {group.voice.tail}")
            yield group.item(
                "extended",
                "value demand changed",
                f"json-{index}",
                prompt,
                base.demand(rule),
                must_not=True,
            )
