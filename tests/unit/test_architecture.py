"""The floors hold, and importing the library loads neither a framework nor a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import stepcache

ROOT = Path(__file__).parents[2]
HEAVY = (
    "faiss",
    "langchain_core",
    "llama_index",
    "numpy",
    "onnxruntime",
    "sentence_transformers",
    "torch",
    "transformers",
)

PROGRAM = """
import sys


class Bare:
    '''An environment in which none of the optional packages is installed.'''

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {blocked!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
        return None


sys.meta_path.insert(0, Bare())
{body}
"""


def _run(body: str, blocked: set[str]) -> str:
    program = PROGRAM.format(blocked=blocked, body=body)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_contracts_hold() -> None:
    """No module imports upwards, and tasks, stores and faces do not know each other."""
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(tool), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_importing_loads_nothing_heavy() -> None:
    """``import stepcache`` alone leaves every heavy package unloaded."""
    body = f"import stepcache\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert _run(body, blocked=set()).strip() == "[]"


def test_a_bare_environment_answers_a_request() -> None:
    """Without any framework, model or extra installed, the engine still works end to end."""
    body = """
import stepcache

class Backend:
    def generate(self, call):
        return stepcache.Reply(text='2x + 3 = 13\\n\\n2x = 10\\n\\nx = 5')

engine = stepcache.StepCacheEngine(backend=Backend())
def ask(text):
    message = stepcache.Message(role='user', text=text)
    return engine.resolve(stepcache.Request(messages=(message,)))
print(ask('Solve 2x + 3 = 13 for x.').route, ask('Solve 13 = 3 + 2x for x.').route)
"""
    blocked = {*HEAVY, "xllamacpp", "typer", "rich", "pydantic"} - {"faiss", "numpy"}
    assert _run(body, blocked).split() == ["miss", "reuse"]


def test_public_names_are_frozen() -> None:
    """Adding to or taking from the public surface is a decision, so it changes this test."""
    assert stepcache.__all__ == [
        "AnswerRejected",
        "ConfigurationError",
        "Constraints",
        "Contract",
        "Control",
        "EmbedderError",
        "Message",
        "ModelCall",
        "NamespaceRequired",
        "Outcome",
        "Policy",
        "PortError",
        "Reply",
        "Request",
        "Step",
        "StepCacheEngine",
        "StepCacheError",
        "StoreError",
        "TaskError",
        "Trace",
        "Usage",
        "UsageError",
        "Verdict",
    ]
    for name in stepcache.__all__:
        assert getattr(stepcache, name) is not None
