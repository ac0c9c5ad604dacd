"""The report as Markdown: every table out of a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stepcache._counts import count
from stepcache.bench._figures import PAPER_TABLE, Row, summary
from stepcache.bench._modes import MODES

__all__ = ["TARGETS", "markdown", "targets"]

TARGETS: tuple[tuple[str, str, str, float, bool], ...] = (
    ("correctness", "72.5 -> 100 %", "correct", 1.0, True),
    ("wrong serves", "", "wrong_serves", 0, False),
    ("mean latency, times lower", "3.2", "mean_seconds", 20, True),
    ("median latency, times lower", "242", "median_seconds", 1000, True),
    ("p95 latency, times lower", "1.02", "p95_seconds", 5, True),
    ("tokens saved", "24 %", "tokens_saved", 0.90, True),
    ("requests without a model call", "79.7 %", "without_call", 0.94, True),
    ("skip", "14.9 %", "skip", 0.01, False),
)
"""Name, the paper's figure, ours by name, what it must reach, whether more is better."""

PICTURES = ("latency", "routes", "tokens", "correctness")
_SHOWN_FAULTS = 40


def targets(split: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What StepCache as shipped must show on the paper split beside the bare model."""
    shipped, bare = split.get("stepcache"), split.get("bare")
    if shipped is None or bare is None:
        return []
    own, times = shipped["overall"], shipped["ratios_to_bare"]
    got = {
        **{name: own[name] for name in ("correct", "wrong_serves", "without_call")},
        **{name: times[name] for name in ("mean_seconds", "median_seconds", "p95_seconds")},
        "tokens_saved": times["tokens_saved"],
        "skip": own["routes"].get("skip", 0) / max(1, own["requests"]),
    }
    return [
        {
            "name": name,
            "paper": paper,
            "wanted": wanted,
            "got": got[key],
            "reached": got[key] is not None
            and (got[key] >= wanted if more else got[key] <= wanted),
        }
        for name, paper, key, wanted, more in TARGETS
    ]


def markdown(record: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The whole report."""
    told = summary(rows)
    parts = ["# StepCache benchmark", _about(record["run"])]
    for split, modes in told.items():
        parts += [f"## Split: {split}", _overall(modes)]
        parts += [_pictures(split)]
        if split == "paper":
            parts += ["### Against the paper's table", _against_paper(modes)]
            reached = targets(modes)
            if reached:
                parts += ["### What it must show", _targets(reached)]
        parts += [
            "### Routes",
            _routes(modes),
            "### Times and portions against bare",
            _ratios(modes),
        ]
        ablations = [n for n in modes if n.startswith("stepcache") and n != "stepcache-paper"]
        if len(ablations) > 1:
            parts += ["### What each part is worth", _worth(modes, ablations)]
        parts += ["### By seed", _by(modes, "by_seed"), "### By family", _by(modes, "by_family")]
        parts += ["### Correct by perturbation", _groups(modes, "correct")]
        parts += ["### Wrong serves by perturbation", _groups(modes, "wrong_serves")]
        if "stepcache" in modes:
            parts += ["### StepCache as shipped, routes by perturbation", _routes_by_group(modes)]
    parts += ["## Faults of StepCache as shipped", _faults(rows)]
    parts += ["## How it was measured", _method(record["run"])]
    return "\n\n".join(parts) + "\n"


def _pictures(split: str) -> str:
    return "\n".join(f"![{name}]({split}-{name}.png)" for name in PICTURES)


def _about(run: Mapping[str, Any]) -> str:
    machine = run.get("machine", {})
    versions = ", ".join(f"{k} {v}" for k, v in machine.get("versions", {}).items())
    lines = [
        f"- model: {run.get('model')} at {run.get('endpoint')}; {run.get('sampling')}",
        f"- prompt cache of the server: {run.get('prompt_cache')}; its threads: "
        f"{run.get('server_threads') or 'as it chooses'}",
        f"- seeds: {', '.join(map(str, run.get('seeds', ())))}; quick: {run.get('quick')}",
        f"- wordings: {run.get('wordings')} ({str(run.get('wordings_digest'))[:12]})",
        f"- machine: {machine.get('processor')}, {count(int(machine.get('cores') or 0), 'core')}, "
        f"{machine.get('memory_gib')} GiB; {machine.get('system')}; Python {machine.get('python')}",
        f"- versions: {versions}",
        f"- started {run.get('started')}, {run.get('seconds', 0):.0f} s of running",
    ]
    if run.get("left_out"):
        lines.append(f"- left out: {run['left_out']}")
    return "\n".join(lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def _title(mode: str) -> str:
    return MODES[mode].title if mode in MODES else mode


def _seconds(value: float) -> str:
    return f"{value * 1000:.2f} ms" if value < 0.1 else f"{value:.2f} s"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}x" if value < 100 else f"{value:,.0f}x"


def _overall(modes: Mapping[str, Any]) -> str:
    head = [
        *("mode", "requests", "mean", "median", "p95", "p99", "tokens in", "tokens out"),
        *("model calls", "correct (95 % interval)", "wrong serves"),
    ]
    return _table(head, ([_title(name), *_line(one["overall"])] for name, one in modes.items()))


def _line(f: Mapping[str, Any]) -> list[str]:
    between = f"{_percent(f['correct_low'])} to {_percent(f['correct_high'])}"
    return [
        str(f["requests"]),
        *(_seconds(f[f"{name}_seconds"]) for name in ("mean", "median", "p95", "p99")),
        f"{f['tokens_in']:,}",
        f"{f['tokens_out']:,}",
        str(f["calls"]),
        f"{_percent(f['correct'])} ({between})",
        str(f["wrong_serves"]),
    ]


def _against_paper(modes: Mapping[str, Any]) -> str:
    head = [
        "",
        "mean",
        "median",
        "p95",
        "tokens a seed",
        "correct",
        "without a call",
        "patch",
        "skip",
    ]
    lines = []
    for name, of in PAPER_TABLE.items():
        rest = [_percent(of.get(key)) for key in ("without_call", "patch", "skip")]
        times = [_seconds(of[f"{key}_seconds"]) for key in ("mean", "median", "p95")]
        lines.append(
            [f"paper: {name}", *times, f"{of['tokens']:,.0f}", _percent(of["correct"]), *rest]
        )
    here = [mode for mode in ("bare", "stepcache-paper", "stepcache") if mode in modes]
    lines += [[f"here: {_title(mode)}", *_as_paper(modes[mode])] for mode in here]
    return _table(head, lines)


def _as_paper(mode: Mapping[str, Any]) -> list[str]:
    f, seeds = mode["overall"], max(1, len(mode["by_seed"]))
    shares = [f["routes"].get(name, 0) / max(1, f["requests"]) for name in ("patch", "skip")]
    return [
        *(_seconds(f[f"{name}_seconds"]) for name in ("mean", "median", "p95")),
        f"{f['tokens'] / seeds:,.0f}",
        _percent(f["correct"]),
        _percent(f["without_call"]),
        *map(_percent, shares),
    ]


def _targets(reached: Sequence[Mapping[str, Any]]) -> str:
    def told(name: str, value: float | None) -> str:
        if value is None:
            return "-"
        if "times" in name:
            return _times(value)
        return str(value) if name == "wrong serves" else _percent(value)

    return _table(
        ["", "paper", "wanted", "got", "reached"],
        (
            [
                r["name"],
                r["paper"],
                told(r["name"], r["wanted"]),
                told(r["name"], r["got"]),
                "yes" if r["reached"] else "**no**",
            ]
            for r in reached
        ),
    )


def _routes(modes: Mapping[str, Any]) -> str:
    names = sorted({route for one in modes.values() for route in one["overall"]["routes"]})
    lines = []
    for mode, one in modes.items():
        f = one["overall"]
        shares = (f["routes"].get(name, 0) / max(1, f["requests"]) for name in names)
        lines.append([_title(mode), _percent(f["without_call"]), *map(_percent, shares)])
    return _table(["mode", "without a call", *names], lines)


def _ratios(modes: Mapping[str, Any]) -> str:
    latencies = ("mean_seconds", "median_seconds", "p95_seconds", "p99_seconds")
    lines = [
        [
            _title(mode),
            *(_times(one["ratios_to_bare"].get(name)) for name in latencies),
            *(_percent(one["ratios_to_bare"].get(f"{n}_saved")) for n in ("tokens", "calls")),
        ]
        for mode, one in modes.items()
    ]
    return _table(["mode", "mean", "median", "p95", "p99", "tokens saved", "calls saved"], lines)


def _worth(modes: Mapping[str, Any], names: Sequence[str]) -> str:
    """Each ablation beside StepCache as shipped: what grows when a part is off."""
    head = [
        *("mode", "mean", "to shipped", "p95", "to shipped", "tokens", "to shipped", "calls"),
        *("without a call", "correct", "wrong serves"),
    ]
    shipped = modes.get("stepcache", {}).get("overall")
    lines = []
    for name in names:
        f = modes[name]["overall"]
        to = {
            key: _times(f[key] / shipped[key] if shipped and shipped[key] else None)
            for key in ("mean_seconds", "p95_seconds", "tokens")
        }
        lines.append(
            [
                *(_title(name), _seconds(f["mean_seconds"]), to["mean_seconds"]),
                *(_seconds(f["p95_seconds"]), to["p95_seconds"]),
                *(f"{f['tokens']:,}", to["tokens"], str(f["calls"])),
                *(_percent(f["without_call"]), _percent(f["correct"]), str(f["wrong_serves"])),
            ]
        )
    return _table(head, lines)


def _by(modes: Mapping[str, Any], part: str) -> str:
    head = [
        *("mode", "part", "requests", "mean", "median", "p95", "p99", "tokens in", "tokens out"),
        *("model calls", "correct (95 % interval)", "wrong serves"),
    ]
    lines = (
        [_title(mode), name, *_line(f)]
        for mode, one in modes.items()
        for name, f in one[part].items()
    )
    return _table(head, lines)


def _groups(modes: Mapping[str, Any], figure: str) -> str:
    groups = sorted({group for one in modes.values() for group in one["by_group"]})
    lines = []
    for group in groups:
        cells = [one["by_group"].get(group) for one in modes.values()]
        told = [
            "-" if f is None else _percent(f[figure]) if figure == "correct" else str(f[figure])
            for f in cells
        ]
        lines.append([group, str(next(f["requests"] for f in cells if f)), *told])
    return _table(["perturbation", "requests", *map(_title, modes)], lines)


def _routes_by_group(modes: Mapping[str, Any]) -> str:
    groups = modes["stepcache"]["by_group"]
    names = sorted({route for f in groups.values() for route in f["routes"]})
    lines = [
        [
            group,
            "must not be served as it stands" if f["must_not"] else "",
            *(str(f["routes"].get(name, 0)) for name in names),
        ]
        for group, f in sorted(groups.items())
    ]
    return _table(["perturbation", "", *names], lines)


def _faults(rows: Sequence[Row]) -> str:
    wrong = [r for r in rows if r.fault and r.exchange.mode == "stepcache"]
    wrong = [r for r in wrong if r.item.split != "warm-up"]
    if not wrong:
        return "None."
    head = ["request", "fault", "route", "why", "prompt"]
    lines = (
        [
            row.item.id,
            row.fault,
            row.exchange.route,
            _cell(row.judgement.why or row.judgement.stale or "an earlier answer as it stands"),
            _cell(row.item.prompt),
        ]
        for row in wrong[:_SHOWN_FAULTS]
    )
    rest = len(wrong) - _SHOWN_FAULTS
    return _table(head, lines) + (f"\n\nand {rest} more, in the JSON" if rest > 0 else "")


def _method(run: Mapping[str, Any]) -> str:
    shared = _SHARED if run.get("share_calls") else ""
    beside = _BESIDE if run.get("side_by_side", 1) > 1 else ""
    return _METHOD.format(shared=shared, beside=beside)


def _cell(text: str) -> str:
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= 160 else f"{flat[:157]}..."


_SHARED = """ Where several modes make the very same call for
one request, the first makes it and the time it took is counted for every one of them, so that noise
of the machine is the same for all; nothing is carried from one request to the next."""

_BESIDE = """ Seeds were played side by side on
one server: latencies are those of a busy server, answers are not touched by it."""

_METHOD = """\
Every seed gives ten base equations and ten base subjects. Each mode is warmed with the base
prompts, all with the same answers and outside the figures, and starts each seed with an empty cache
of its own. Then every request is put to every mode, one after another, on one server, in an order
of modes that is rotated from seed to seed. Latency is the wall time of the whole call, library code
included; tokens are those the endpoint reports.{shared}{beside}

The paper gives a total of 222 requests a seed and the shares of outcomes (177 reused, 12 patched,
33 skipped), not the split. This one fits them: 30 paraphrases of each of three levels in both
families (180), 30 equations with other constants, 12 objects with a key more.

*StepCache as in the paper* takes the paper's choices (one candidate, nothing adapted, no lookup by
parsed demands, a patch makes the whole object anew) with this library's verification. Where its row
differs from the paper's, these differ: a request with words that nobody can explain is skipped here
whatever its similarity; the one candidate is found by a lexical embedder that is told nothing of
digits, so that of ten equations asked in the same words it is often another one, and skipped;
model, machine and prompts are others, and so is the portion of the bare model's answers that is
wrong.

A *wrong serve* is an answer out of a cache that does not satisfy the request (a line of the working
that is not true of the equation is enough), or, where no earlier answer can satisfy it, any earlier
answer as it stands. *Inherited* is an answer that the model got wrong when
it was made and that was given again to the same demand. Both count as not correct. The judge knows
from the generator what was asked for, solves equations with sympy and validates objects with
fastjsonschema; it shares no code with the caches."""
