"""What the JSON prompts are about. Facts play no part in the benchmark; names and keys do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "NAMES", "RENAMES", "SCHEMAS", "SOURCES", "SYMBOLS", "Kind", "Source"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of subject: how it is called in a prompt, and the keys it can be described by."""

    phrase: str
    topic_key: str
    keys: tuple[str, ...]
    """The other keys; a base prompt asks for the first three."""
    names: tuple[str, ...]


def _kind(phrase: str, keys: str, names: str, topic_key: str = "name") -> Kind:
    return Kind(phrase, topic_key, tuple(keys.split()), tuple(names.split(", ")))


KINDS: tuple[Kind, ...] = (
    _kind(
        "the city of {name}",
        "country continent language currency river climate",
        "Paris, Tokyo, Cairo, Lisbon, Oslo, Nairobi, Lima, Vienna, Sydney, Toronto, Warsaw, Hanoi",
    ),
    _kind(
        "the river {name}",
        "continent source mouth length basin",
        "Nile, Danube, Mekong, Rhine, Volga, Ganges, Loire, Murray, Congo, Thames",
    ),
    _kind(
        "the animal called {name}",
        "class diet habitat lifespan color",
        "tiger, dolphin, eagle, octopus, camel, penguin, wolf, tortoise, salmon, koala",
    ),
    _kind(
        "the chemical element {name}",
        "symbol atomic_number group state color",
        "oxygen, iron, helium, copper, carbon, sodium, silver, neon, calcium, zinc",
    ),
    _kind(
        "the programming language {name}",
        "creator year typing paradigm license",
        "Python, Rust, Haskell, Ruby, Kotlin, Erlang, Fortran, Scala, Lua, Swift",
    ),
    _kind(
        "the musical instrument {name}",
        "family origin material range players",
        "violin, trumpet, flute, cello, harp, oboe, banjo, clarinet, piano, tuba",
    ),
    _kind(
        "the fruit {name}",
        "color taste season family origin",
        "apple, mango, banana, cherry, papaya, lemon, grape, peach, kiwi, plum",
    ),
    _kind(
        "the sport of {name}",
        "players equipment venue origin duration",
        "tennis, cricket, hockey, rugby, golf, judo, rowing, fencing, cycling, curling",
    ),
)

RENAMES: dict[str, str] = {
    "country": "nation",
    "continent": "landmass",
    "language": "tongue",
    "source": "spring",
    "mouth": "outlet",
    "class": "taxon",
    "diet": "food",
    "habitat": "home",
    "symbol": "sign",
    "atomic_number": "number",
    "group": "column",
    "creator": "author",
    "year": "released",
    "typing": "type_system",
    "family": "section",
    "origin": "birthplace",
    "material": "made_of",
    "color": "hue",
    "taste": "flavor",
    "season": "harvest",
    "players": "team_size",
    "equipment": "gear",
    "venue": "place",
    "name": "title",
}
"""Another name for the same key."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text to extract from, with slots, and the values that fill them."""

    text: str
    keys: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]


SOURCES: tuple[Source, ...] = (
    Source(
        "{0} is {1} years old and lives in {2}.",
        ("name", "age", "city"),
        (
            ("Ann", 30, "Oslo"),
            ("Bob", 25, "Lima"),
            ("Carla", 41, "Oslo"),
            ("Ann", 31, "Oslo"),
            ("Dan", 30, "Cairo"),
            ("Ann", 30, "Lima"),
            ("Edith", 67, "Vienna"),
        ),
    ),
    Source(
        "Order {0}: {1} boxes of {2}.",
        ("order", "quantity", "product"),
        (
            (118, 4, "tea"),
            (118, 4, "salt"),
            (119, 4, "tea"),
            (118, 6, "tea"),
            (502, 12, "rice"),
            (377, 2, "candles"),
            (640, 9, "paper"),
        ),
    ),
    Source(
        "The meeting with {0} starts at {1} in room {2}.",
        ("person", "time", "room"),
        (
            ("Mia", "10:30", 12),
            ("Mia", "11:30", 12),
            ("Noah", "10:30", 12),
            ("Mia", "10:30", 21),
            ("Omar", "09:15", 3),
            ("Petra", "16:45", 8),
            ("Quinn", "14:00", 30),
        ),
    ),
    Source(
        "Flight {0} leaves {1} for {2}.",
        ("flight", "origin", "destination"),
        (
            ("KX201", "Madrid", "Athens"),
            ("KX201", "Athens", "Madrid"),
            ("KX202", "Madrid", "Athens"),
            ("KX201", "Madrid", "Dublin"),
            ("LT77", "Riga", "Prague"),
            ("BR9", "Zagreb", "Tunis"),
            ("QA350", "Doha", "Perth"),
        ),
    ),
    Source(
        "{0} bought the {1} for {2} euros.",
        ("buyer", "item", "price"),
        (
            ("Ravi", "lamp", 45),
            ("Ravi", "lamp", 54),
            ("Sara", "lamp", 45),
            ("Ravi", "desk", 45),
            ("Tom", "sofa", 320),
            ("Uma", "kettle", 28),
            ("Vera", "mirror", 75),
        ),
    ),
)

SCHEMAS: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "the mountain Everest",
        "Everest",
        "difficulty",
        ("easy", "medium", "hard"),
        ("height", "country"),
    ),
    ("the planet Mars", "Mars", "kind", ("rocky", "gas", "ice"), ("moons", "color")),
    ("the metal gold", "gold", "price", ("low", "middle", "high"), ("density", "symbol")),
    ("the bird robin", "robin", "size", ("small", "medium", "large"), ("eggs", "color")),
    ("the drink coffee", "coffee", "strength", ("mild", "strong", "bitter"), ("cups", "origin")),
)
"""Phrase, name, a key with a closed list of values, that list, and a count and a word as keys."""

SYMBOLS: dict[str, str] = {
    "oxygen": "O",
    "iron": "Fe",
    "helium": "He",
    "copper": "Cu",
    "carbon": "C",
    "sodium": "Na",
    "silver": "Ag",
    "neon": "Ne",
    "calcium": "Ca",
    "zinc": "Zn",
    "gold": "Au",
}
"""The other name that a chemical element has."""

NAMES: frozenset[str] = frozenset(
    [name for kind in KINDS for name in kind.names] + [name for _, name, *_ in SCHEMAS]
)
"""Every subject there is."""
