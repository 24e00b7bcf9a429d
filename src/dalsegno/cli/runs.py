"""Commands for workflows and their runs. Each calls one operation and shows what it returned."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli import completion, models
from dalsegno.cli.output import opened, show, show_all, show_page, tell_warnings, to_json
from dalsegno.cli.running import EXIT_CODES, LEFT
from dalsegno.cli.workflows import SUFFIXES
from dalsegno.operations.printable import escaped

if TYPE_CHECKING:
    from dalsegno.model.full_refresh import FullRefresh
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.run_views import RunView

WorkflowId = Annotated[
    str, typer.Argument(metavar="WORKFLOW", help="The workflow's id.", autocompletion=completion.workflows)
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="WORKFLOW/NUMBER, a run's id, or a workflow for its newest run.",
        autocompletion=completion.runs,
    ),
]
StepId = Annotated[str, typer.Argument(metavar="STEP", help="The step's id.", autocompletion=completion.steps)]
Step = Annotated[str | None, typer.Option(metavar="STEP", help="Only this step.", autocompletion=completion.steps)]
Iteration = Annotated[
    str, typer.Option(metavar="PATH", help="The iteration of a step inside a loop: LOOP/INDEX, such as each_day/3.")
]
Params = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=VALUE", help="Set parameters; lists and mappings are written as JSON."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Use this settings file instead of the nearest dalsegno.toml."),
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Run it in this process, or leave it to a server or dalsegno work.")
]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Say why, for the history.")]


def register(app: typer.Typer) -> None:
    """Add the commands, in the order in which one needs them."""
    for command in (
        push,
        run,
        runs,
        show_run,
        watch,
        logs,
        stop,
        kill,
        skip,
        restart,
        pause,
        resume,
        versions,
        delete,
        work,
    ):
        app.command(_NAMES.get(command.__name__, command.__name__))(command)


_NAMES = {"show_run": "show"}


def _params(pairs: list[str] | None, operations: Operations, workflow: str, version: str) -> Mapping[str, Any]:
    from dalsegno.errors import UserError  # noqa: PLC0415

    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UserError(f"{pair!r} is not a parameter: expected NAME=VALUE.")
        found[name] = value
    if not found:
        return {}
    typed = operations.runs.typed_params(workflow, found, version=version)
    for name, known in typed.mistyped.items():
        print(f"{workflow} has no parameter {name!r}; did you mean {known!r}? It is set all the same.", file=sys.stderr)
    return typed.values


def push(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="A workflow in YAML or JSON, or a folder of models.")
    ],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Store workflows, each as a new version.

    If a file has problems, the command prints all of them and stores nothing of it.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415

        for file in files:
            if file.is_dir():
                models.push_folder(operations, file, as_json=json)
                continue
            pushed = operations.workflows.push_file(file)
            if not json:
                tell_warnings(pushed.warnings, file)
            show(pushed, run_text.pushed, as_json=json)


def run(
    workflow: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW",
            help="The workflow's id, a file to push first, or a folder of models.",
            autocompletion=completion.workflows,
        ),
    ],
    params: Params = None,
    version: Annotated[
        str, typer.Option(metavar="VERSION", help="active, latest, default (active, else latest) or a number.")
    ] = "default",
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Idempotency key: the same key starts the same run only once.")
    ] = None,
    full_refresh: Annotated[
        bool,
        typer.Option(
            "--full-refresh",
            help="Process the whole sources again, and replace what the workflow's SQL wrote before.",
        ),
    ] = False,
    empty: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE",
            help="With --full-refresh: empty this table although others wrote to it. Repeatable.",
            autocompletion=completion.tables,
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP", help="With --full-refresh: this job writes no rows, or replaces all of them. Repeatable."
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Of a folder: only this model; +MODEL with all that it reads, MODEL+ with all that reads it. "
            "Repeatable.",
        ),
    ] = None,
    wait: Wait = True,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Run a workflow in this process and show its progress.

    Of a folder of models, run those whose SELECT or sources changed, each after the models that it reads.

    Ctrl-C stops the run. Exit codes: 0 succeeded, 10 failed, 11 stopped, 12 timed out; 2, 3 and 4 as for every command.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text, running  # noqa: PLC0415
        from dalsegno.errors import UserError  # noqa: PLC0415

        refresh = _full_refresh(empty, trust, is_wanted=full_refresh)
        if models.is_folder_of_models(workflow, operations):
            _refuse_options_of_workflow(params, key, version, is_waited_for=wait)
            models.run_folder(operations, Path(workflow), select or (), refresh, as_json=json)
            return
        if select:
            raise UserError(f"--select is an option of a folder of models, and {workflow!r} is not a folder.")
        file: Path | None = None
        if Path(workflow).is_file() or Path(workflow).suffix in SUFFIXES:
            file, pushed = Path(workflow), operations.workflows.push_file(Path(workflow))
            tell_warnings(pushed.warnings, file)
            workflow = pushed.workflow_id
        given = _params(params, operations, workflow, version)
        started = operations.runs.start(workflow, given, version=version, idempotency_key=key, full_refresh=refresh)
        if not wait:
            _leave_to_others(operations, started, as_json=json)
            return
        if not json:
            print(run_text.submitted(started), flush=True)
        named = str(file) if file else None
        ended = running.run_here(operations, started, is_quiet=json, file=named)
        _finish(operations, ended, as_json=json, file=named)


def _refuse_options_of_workflow(
    params: list[str] | None, key: str | None, version: str, *, is_waited_for: bool
) -> None:
    from dalsegno.errors import UserError  # noqa: PLC0415

    given = {
        "parameters": bool(params),
        "--key": key is not None,
        "--version": version != "default",
        "--no-wait": not is_waited_for,
    }
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise UserError(
            f"A folder of models is run without {', '.join(wrong)}.", hint="Run one of its workflows by its id."
        )


def _full_refresh(empty: list[str] | None, trust: list[str] | None, *, is_wanted: bool) -> FullRefresh | None:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.model.full_refresh import FullRefresh  # noqa: PLC0415

    if not is_wanted and (empty or trust):
        raise UserError("--empty and --trust are options of a full refresh.", hint="Add --full-refresh.")
    return FullRefresh(frozenset(empty or ()), frozenset(trust or ())) if is_wanted else None


def _leave_to_others(operations: Operations, started: RunView, *, as_json: bool) -> None:
    from dalsegno.cli import run_text  # noqa: PLC0415

    is_attended = operations.runs.is_attended()
    show(started, lambda run: run_text.left_to_others(run, is_attended=is_attended), as_json=as_json)


def _finish(operations: Operations, ended: RunView, *, as_json: bool, file: str | None = None) -> None:
    from dalsegno.cli.running import tree_of  # noqa: PLC0415

    if as_json:
        print(to_json({"run": ended, "steps": operations.runs.steps(ended.id)}))
    elif not sys.stdout.isatty():
        print(tree_of(operations, ended, file))
    raise typer.Exit(EXIT_CODES[ended.status])


def runs(
    workflow: Annotated[
        str | None,
        typer.Argument(metavar="WORKFLOW", help="Only runs of this workflow.", autocompletion=completion.workflows),
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="Only runs with this status, such as FAILED. Repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="List at most this many.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="List what follows the page that named this cursor.")
    ] = None,
    params: Annotated[
        bool, typer.Option("--params", help="With --json: print the parameters of each run, too.")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List runs, newest first."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415

        found = operations.runs.list(
            workflow, status=status or (), limit=limit, cursor=after, with_params=params and json
        )
        show_page(found, run_text.runs, as_json=json)


def show_run(run: RunName, json: Json = False, settings: SettingsFile = None) -> None:
    """Show a run with its steps, iterations and failures."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli.running import tree_of  # noqa: PLC0415

        found = operations.runs.get(run)
        if json:
            print(to_json({"run": found, "steps": operations.runs.steps(found.id)}))
        else:
            print(tree_of(operations, found))


def watch(run: RunName, json: Json = False, settings: SettingsFile = None) -> None:
    """Follow a run until it ends. The exit codes are those of dalsegno run."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import running  # noqa: PLC0415

        _finish(operations, running.watch(operations, run, is_quiet=json), as_json=json)


def logs(
    run: RunName,
    step: StepId,
    attempt: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The attempt of the step. By default, the last.")
    ] = None,
    iteration: Iteration = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new lines until the run ends.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print control characters unchanged, on a terminal, too.")] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Print the log of a step.

    On a terminal, control characters are shown as \\\\u001b and the like. A pipe gets every byte unchanged.
    """
    with opened(settings, as_json=json) as operations:
        collected = bytearray()
        printed = collected.extend if json else _as_it_is if raw or not sys.stdout.isatty() else _for_terminals()
        is_empty = True
        for chunk in operations.runs.log(run, step, attempt=attempt, iteration=iteration, follow=follow):
            printed(chunk)
            sys.stdout.flush()
            is_empty = False
        if json:
            text = collected.decode("utf-8", "backslashreplace")
            print(to_json({"run": operations.runs.get(run).name, "step": step, "log": text}))
        elif is_empty:
            print(f"{step} has written nothing.", file=sys.stderr)


def _as_it_is(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)


def _for_terminals() -> Callable[[bytes], object]:
    # A character may begin in one chunk and end in the next.
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return lambda chunk: sys.stdout.write(escaped(decoder.decode(chunk)))


def _ended(operations: Operations, found: RunView, *, as_json: bool) -> None:
    from dalsegno.cli import run_text  # noqa: PLC0415

    if not found.status.is_final and not operations.runs.is_attended():
        # Nobody else would do it.
        found = operations.runs.finish(found.id)
    show(found, lambda each: run_text.run_line(each, operations.clock()), as_json=as_json)


def stop(
    run: RunName,
    step: Step = None,
    iteration: Iteration = "",
    reason: Reason = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Stop a run, or one of its steps, and end its jobs."""
    with opened(settings, as_json=json) as operations:
        _ended(operations, operations.runs.stop(run, step=step, iteration=iteration, reason=reason), as_json=json)


def kill(
    run: RunName,
    step: Step = None,
    iteration: Iteration = "",
    reason: Reason = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Fail a run, or one of its steps, and end its jobs."""
    with opened(settings, as_json=json) as operations:
        _ended(operations, operations.runs.kill(run, step=step, iteration=iteration, reason=reason), as_json=json)


def skip(
    run: RunName,
    step: StepId,
    iteration: Iteration = "",
    reason: Reason = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Skip a step: continue the run as if it had succeeded.

    If the step runs, it is ended.
    """
    with opened(settings, as_json=json) as operations:
        _ended(operations, operations.runs.skip(run, step, iteration=iteration, reason=reason), as_json=json)


def restart(
    run: RunName,
    params: Params = None,
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar="WHERE", help="incomplete, beginning, or a step's id.", autocompletion=completion.steps
        ),
    ] = "incomplete",
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP", help="Count this step as done. Repeatable.", autocompletion=completion.steps),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Use the newest version of the workflow: --version latest.")
    ] = False,
    version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="Use this version: active, latest, default or a number. By default, the run's own."
        ),
    ] = None,
    wait: Wait = True,
    reason: Reason = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Restart a run that has ended, as its next run attempt.

    By default, steps that completed are not run again.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text, running  # noqa: PLC0415
        from dalsegno.model.runs import RestartFrom  # noqa: PLC0415

        where = RestartFrom(start) if start in ("incomplete", "beginning") else RestartFrom.STEP
        step = start if where is RestartFrom.STEP else None
        before = operations.runs.get(run)
        chosen = _chosen_version(version, is_latest=latest)
        given = _params(params, operations, before.workflow_id, chosen or str(before.version))
        seen = operations.runs.last_event(before.id)
        started = operations.runs.restart(
            before.id, restart=where, step=step, params=given, skip=skip or (), version=chosen, reason=reason
        )
        newest = operations.workflows.newest_version(before.workflow_id)
        if chosen is None and (said := run_text.newer_version(started, newest)):
            print(said, file=sys.stderr, flush=True)
        if not wait:
            _leave_to_others(operations, started, as_json=json)
            return
        if not json:
            print(run_text.submitted(started), flush=True)
        _finish(operations, running.run_here(operations, started, is_quiet=json, after=seen), as_json=json)


def _chosen_version(version: str | None, *, is_latest: bool) -> str | None:
    from dalsegno.errors import UserError  # noqa: PLC0415

    if is_latest and version not in (None, "latest"):
        raise UserError(f"--latest and --version {version} name two versions.", hint="Give one of them.")
    return "latest" if is_latest else version


def pause(run: RunName, reason: Reason = None, json: Json = False, settings: SettingsFile = None) -> None:
    """Pause a run: start no new step of it. Steps that run continue."""
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415

        show(
            operations.runs.pause(run, reason=reason),
            lambda each: run_text.run_line(each, operations.clock()),
            as_json=json,
        )


def resume(
    run: RunName, step: Step = None, iteration: Iteration = "", json: Json = False, settings: SettingsFile = None
) -> None:
    """Resume a paused run, or a step that waits.

    A step waits at a breakpoint, or for signals.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415

        found = operations.runs.resume(run, step, iteration=iteration)
        show(found, lambda each: run_text.run_line(each, operations.clock()), as_json=json)


def versions(
    workflow: WorkflowId,
    activate: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Activate this version: a number, or latest.")
    ] = None,
    deactivate: Annotated[
        bool, typer.Option("--deactivate", help="Deactivate the workflow: triggers no longer start it.")
    ] = False,
    reason: Reason = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="FROM TO", help="Print a diff of two versions: the definition and its files."),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List, compare or activate the versions of a workflow."""
    from dalsegno.cli import run_text  # noqa: PLC0415

    with opened(settings, as_json=json) as operations:
        if diff is not None:
            show(operations.workflows.diff(workflow, *diff), run_text.version_diff, as_json=json)
            return
        if activate is not None:
            operations.workflows.activate(workflow, activate, reason=reason)
        elif deactivate:
            operations.workflows.deactivate(workflow, reason=reason)
        show_all(lambda cursor: operations.workflows.versions(workflow, cursor=cursor), run_text.versions, as_json=json)


def delete(workflow: WorkflowId, reason: Reason = None, json: Json = False, settings: SettingsFile = None) -> None:
    """Delete a workflow that has no open runs.

    If you push it again, its run numbers continue.
    """
    with opened(settings, as_json=json) as operations:
        operations.workflows.delete(workflow, reason=reason)
        show({"deleted": workflow}, lambda found: f"Deleted {found['deleted']}.", as_json=json)


def work(json: Json = False, settings: SettingsFile = None) -> None:
    """Run all open runs in this process, until none is left.

    This includes runs of processes that died.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import run_text  # noqa: PLC0415
        from dalsegno.model.runs import RunStatus  # noqa: PLC0415

        states = [status.value for status in RunStatus if not status.is_final]
        found = operations.runs.list(status=states, limit=1000)
        if not found:
            show([], lambda _: "There are no open runs.", as_json=json)
            return
        for each in () if json else found:
            print(run_text.run_line(each, operations.clock()), flush=True)
        try:
            operations.runs.work()
        except KeyboardInterrupt:
            print("Left what is open to the next process.", file=sys.stderr)
            raise typer.Exit(LEFT) from None
        ended, now = [operations.runs.get(each.id) for each in found], operations.clock()
        show(ended, lambda runs: "\n".join(run_text.run_line(each, now) for each in runs), as_json=json)
