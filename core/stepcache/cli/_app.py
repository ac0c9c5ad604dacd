"""The commands. Each imports what it needs when it is called."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from stepcache.cli._bench import bench
from stepcache.cli._bench_speed import add_speed_commands
from stepcache.cli._common import AsJson, print_json
from stepcache.cli._doctor import add_doctor_command
from stepcache.cli._eval import HELP as _EVAL_HELP
from stepcache.cli._eval import evaluate_command
from stepcache.cli._forget import add_forget_command
from stepcache.cli._keys import add_key_commands
from stepcache.cli._look import add_look_commands
from stepcache.cli._report import HELP as _REPORT_HELP
from stepcache.cli._report import report_command
from stepcache.cli._serve import HELP as _SERVE_HELP
from stepcache.cli._serve import serve_command
from stepcache.cli._store import add_store_commands
from stepcache.cli._why import add_why_commands

__all__ = ["app"]

app = typer.Typer(
    help="Step-level reuse of language model answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
add_speed_commands(bench)
add_look_commands(app)
add_why_commands(app)
add_forget_command(app)
add_store_commands(app)
add_key_commands(app)
add_doctor_command(app)
app.command("eval", help=_EVAL_HELP)(evaluate_command)
app.command("serve", help=_SERVE_HELP)(serve_command)
app.command("report", help=_REPORT_HELP)(report_command)


class LocalModel(StrEnum):
    """The models that the demonstration can serve by itself."""

    SMOLLM2 = "smollm2"
    QWEN = "qwen2.5-coder-0.5b"


# One line a paragraph: the help printer keeps line ends.
_DEMO_HELP = (
    "Play 24 requests through a chain over a real model, with and without StepCache.\n\n"
    "Starts a local model behind an HTTP server on loopback, unless --base-url names another "
    "endpoint. Ends with status 0 when every answer served by StepCache is correct and its mean "
    "latency and tokens are below the bare model's, else with status 1."
)

# Narrower than this the reasons are cut away; files and logs have no width of their own.
_WIDTH_WITHOUT_TERMINAL = 160


@app.command()
def version(as_json: AsJson = False) -> None:
    """Print the installed version."""
    import platform
    from importlib.metadata import version as installed

    if as_json:
        print_json({"stepcache": installed("stepcache"), "python": platform.python_version()})
    else:
        typer.echo(installed("stepcache"))


@app.command(help=_DEMO_HELP)
def demo(
    model: Annotated[
        LocalModel,
        typer.Option(
            metavar="NAME",
            help="Local model to fetch (once) and to serve: qwen2.5-coder-0.5b, 490 MB, right on "
            "simple tasks, or smollm2, 98 MB and often wrong.",
        ),
    ] = LocalModel.QWEN,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Use this OpenAI-compatible endpoint instead, e.g. http://127.0.0.1:8000/v1.",
        ),
    ] = None,
    model_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model's name at that endpoint.")
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="VAR", help="Environment variable that holds its API key."),
    ] = None,
    prefill: Annotated[
        bool, typer.Option("--prefill", help="That endpoint continues an assistant message.")
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Write the raw record to this file; - for stdout."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Sampling seed sent with every request.")] = 0,
) -> None:
    """Play the demonstration."""
    if (base_url is None) != (model_name is None):
        _usage("--base-url and --model-name go together")
    if base_url is None and (api_key_env is not None or prefill):
        _usage("--api-key-env and --prefill are about the endpoint that --base-url names")
    api_key = _key(api_key_env)
    try:
        from rich.console import Console

        from stepcache.demo._main import Options, run
        from stepcache.demo._server import LocalServerError
        from stepcache.demo._weights import WeightsError

        aside = json_file is not None and str(json_file) == "-"
        width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
        console = Console(width=width, stderr=aside)
        options = Options(
            model=model.value,
            base_url=base_url,
            model_name=model_name,
            api_key=api_key,
            prefill=prefill,
            seed=seed,
            json_file=json_file,
        )
        passed = run(options, console)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("stepcache"):
            raise
        _fail(f'the demo needs {error.name}: run pip install "stepcache[demo]"')
    except (WeightsError, LocalServerError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except Exception as error:  # noqa: BLE001 - a person reads this, and no traceback would help
        where = f"{base_url}: " if base_url is not None else ""
        _fail(f"{where}{type(error).__name__}: {error}"[:1000])
    raise typer.Exit(0 if passed else 1)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        _usage(f"--api-key-env names {variable}, which is not set")
    return value


def _usage(message: str) -> NoReturn:
    typer.echo(f"Error: {message}. Try stepcache demo --help.", err=True)
    raise typer.Exit(2)


def _fail(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(1)
