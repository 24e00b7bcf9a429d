"""Commands for workflows and their runs. Each calls one operation and shows what it returned."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli.output import show, tell_warnings, to_json
from dalsegno.cli.running import EXIT_CODES, LEFT, opened_orchestrator, opened_run_reader
from dalsegno.cli.workflows import SUFFIXES
from dalsegno.operations.printable import escaped

if TYPE_CHECKING:
    from dalsegno.engine.blueprints import Blueprint
    from dalsegno.model.full_refresh import FullRefresh
    from dalsegno.model.runs import Ending
    from dalsegno.operations.orchestrator import Orchestrator
    from dalsegno.operations.run_reader import RunReader
    from dalsegno.operations.run_views import RunView

WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW", help="the workflow's id")]
RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="WORKFLOW/NUMBER, a run's id, or a workflow: its newest run")
]
Step = Annotated[str | None, typer.Option(metavar="STEP", help="this step only")]
Iteration = Annotated[
    str, typer.Option(metavar="PATH", help="of a step inside of loops: LOOP/INDEX, such as each_day/3")
]
Params = Annotated[
    list[str] | None, typer.Argument(metavar="NAME=VALUE", help="parameters; a JSON text is read as such")
]
Json = Annotated[bool, typer.Option("--json", help="for machines")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="the settings file; by default the nearest dalsegno.toml"),
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="run it in this process and show how it goes")]


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


def _params(pairs: list[str] | None, blueprint: Blueprint) -> dict[str, Any]:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.operations.run_params import mistyped_params, typed_params  # noqa: PLC0415

    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UserError(f"{pair!r} is no parameter: expected NAME=VALUE.")
        found[name] = value
    for name, known in mistyped_params(blueprint, found).items():
        workflow = blueprint.workflow.id
        print(f"{workflow} has no parameter {name!r}; did you mean {known!r}? It is set all the same.", file=sys.stderr)
    return typed_params(blueprint, found)


def push(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="a workflow in YAML or JSON")],
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Store workflows, each as a new version; if a file has problems, none of it is stored."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text  # noqa: PLC0415

        for file in files:
            pushed = orchestrator.push_file(file)
            if not json:
                tell_warnings(pushed.warnings, file)
            show(pushed, run_text.pushed, as_json=json)


def run(
    workflow: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="a workflow's id, or a file that is pushed first")
    ],
    params: Params = None,
    version: Annotated[
        str, typer.Option(help="active, latest, default (the active one, else the latest) or a number")
    ] = "default",
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="asking again with the same key is the same run")
    ] = None,
    full_refresh: Annotated[
        bool,
        typer.Option(
            "--full-refresh",
            help="Take the sources as a whole again, and replace what the SQL of the workflow wrote before.",
        ),
    ] = False,
    empty: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE", help="Of a full refresh: empty it although others have written to it. Repeatable."
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP", help="Of a full refresh: this job writes no rows, or replaces all of them. Repeatable."
        ),
    ] = None,
    wait: Wait = True,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Run a workflow, in this process, and show how it goes; Ctrl-C stops it.

    Exit codes: 0 succeeded, 10 failed, 11 stopped, 12 took too long; 2, 3 and 4 as for every command.
    """
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text, running  # noqa: PLC0415

        file: Path | None = None
        if Path(workflow).is_file() or Path(workflow).suffix in SUFFIXES:
            file, pushed = Path(workflow), orchestrator.push_file(Path(workflow))
            tell_warnings(pushed.warnings, file)
            workflow = pushed.workflow_id
        given = _params(params, orchestrator.versions.named(workflow, version))
        refresh = _full_refresh(empty, trust, is_wanted=full_refresh)
        started = orchestrator.start(workflow, given, version=version, idempotency_key=key, full_refresh=refresh)
        if not wait:
            _leave_to_others(orchestrator, started, as_json=json)
            return
        if not json:
            print(run_text.submitted(started), flush=True)
        named = str(file) if file else None
        ended = running.run_here(orchestrator, started, is_quiet=json, file=named)
        _finish(orchestrator, ended, as_json=json, file=named)


def _full_refresh(empty: list[str] | None, trust: list[str] | None, *, is_wanted: bool) -> FullRefresh | None:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.model.full_refresh import FullRefresh  # noqa: PLC0415

    if not is_wanted and (empty or trust):
        raise UserError("--empty and --trust are options of a full refresh.", hint="Add --full-refresh.")
    return FullRefresh(frozenset(empty or ()), frozenset(trust or ())) if is_wanted else None


def _leave_to_others(orchestrator: Orchestrator, started: RunView, *, as_json: bool) -> None:
    from dalsegno.cli import run_text  # noqa: PLC0415

    is_attended = orchestrator.is_attended()
    show(started, lambda run: run_text.left_to_others(run, is_attended=is_attended), as_json=as_json)


def _finish(orchestrator: Orchestrator, ended: RunView, *, as_json: bool, file: str | None = None) -> None:
    from dalsegno.cli.running import tree_of  # noqa: PLC0415

    if as_json:
        print(to_json({"run": ended, "steps": orchestrator.steps(ended.id)}))
    elif not sys.stdout.isatty():
        print(tree_of(orchestrator, ended, file))
    raise typer.Exit(EXIT_CODES[ended.status])


def runs(
    workflow: Annotated[str | None, typer.Argument(metavar="WORKFLOW", help="only of this workflow")] = None,
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="only those that stand so, such as FAILED; repeatable")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 20,
    params: Annotated[
        bool, typer.Option("--params", help="with --json: print the parameters of each run, too")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List runs, newest first."""
    with opened_run_reader(settings, as_json=json) as reader:
        from dalsegno.cli import run_text  # noqa: PLC0415

        found = reader.list_runs(workflow, status=status or (), limit=limit, with_params=params and json)
        show(found, run_text.runs, as_json=json)


def show_run(run: RunName, json: Json = False, settings: SettingsFile = None) -> None:
    """Show a run with its steps, iterations and failures."""
    with opened_run_reader(settings, as_json=json) as reader:
        from dalsegno.cli.running import tree_of  # noqa: PLC0415

        found = reader.run(run)
        if json:
            print(to_json({"run": found, "steps": reader.steps(found.id)}))
        else:
            print(tree_of(reader, found))


def watch(run: RunName, json: Json = False, settings: SettingsFile = None) -> None:
    """Follow a run until it has ended; the exit code is that of ``run``."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import running  # noqa: PLC0415

        _finish(orchestrator, running.watch(orchestrator, run, is_quiet=json), as_json=json)


def logs(
    run: RunName,
    step: Annotated[str, typer.Argument(metavar="STEP", help="the step's id")],
    attempt: Annotated[int | None, typer.Option(min=1, help="which attempt; by default the last")] = None,
    iteration: Iteration = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="go on as long as the run does")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="print control characters as they are, on a terminal as well")
    ] = False,
    settings: SettingsFile = None,
) -> None:
    """Print what a step has written.

    On a terminal, control characters are shown as \\\\u001b and the like; elsewhere every byte is as it was written.
    """
    with opened_run_reader(settings) as reader:
        position = 0
        file: Path | None = None
        printed = _as_it_is if raw or not sys.stdout.isatty() else _for_terminals()
        while True:
            is_over = not follow or reader.run(run).status.is_final
            newest = _log_file(reader, run, step, attempt, iteration, is_to_come=not is_over)
            if newest != file:
                # The step is tried again, and each attempt has a log of its own.
                file, position = newest, 0
            if file is not None and file.exists():
                position = _print_from(file, position, printed)
            if is_over:
                break
            time.sleep(0.2)
        if position == 0:
            print(f"{step} has written nothing.", file=sys.stderr)


def _log_file(
    reader: RunReader, run: str, step: str, attempt: int | None, iteration: str, *, is_to_come: bool
) -> Path | None:
    """None: the step has not been reached, but it may be."""
    from dalsegno.errors import NotReached  # noqa: PLC0415

    try:
        return reader.log_file(run, step, attempt, iteration)
    except NotReached:
        if is_to_come:
            return None
        raise


def _print_from(file: Path, position: int, printed: Callable[[bytes], object]) -> int:
    """Print what a file holds from here on, and say where it ends."""
    with file.open("rb") as log:
        log.seek(position)
        while chunk := log.read(1 << 16):
            printed(chunk)
        sys.stdout.flush()
        return log.tell()


def _as_it_is(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)


def _for_terminals() -> Callable[[bytes], object]:
    # A character may begin in one chunk and end in the next.
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return lambda chunk: sys.stdout.write(escaped(decoder.decode(chunk)))


def _end(run: str, ending: str, step: str | None, iteration: str, json: bool, settings: Path | None) -> None:
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text  # noqa: PLC0415
        from dalsegno.model.runs import Ending  # noqa: PLC0415

        chosen: Ending = Ending(ending)
        found = orchestrator.end(run, chosen, step=step, iteration=iteration)
        if not found.status.is_final and not orchestrator.is_attended():
            # Nobody else would do it.
            found = orchestrator.finish(found.id)
        show(found, lambda each: run_text.run_line(each, orchestrator.clock()), as_json=json)


def stop(
    run: RunName, step: Step = None, iteration: Iteration = "", json: Json = False, settings: SettingsFile = None
) -> None:
    """End a run, or one of its steps; jobs that are running are ended."""
    _end(run, "STOP", step, iteration, json, settings)


def kill(
    run: RunName, step: Step = None, iteration: Iteration = "", json: Json = False, settings: SettingsFile = None
) -> None:
    """The same as stop, but it counts as a failure."""
    _end(run, "KILL", step, iteration, json, settings)


def skip(
    run: RunName,
    step: Annotated[str, typer.Argument(metavar="STEP", help="the step's id")],
    iteration: Iteration = "",
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Go on as if a step had succeeded; if it runs, it is ended."""
    _end(run, "SKIP", step, iteration, json, settings)


def restart(
    run: RunName,
    params: Params = None,
    start: Annotated[
        str, typer.Option("--from", metavar="WHERE", help="incomplete (the default), beginning, or a step's id")
    ] = "incomplete",
    skip: Annotated[list[str] | None, typer.Option(metavar="STEP", help="count this step as done; repeatable")] = None,
    latest: Annotated[
        bool, typer.Option("--latest", help="Resume with the newest version of the workflow: --version latest.")
    ] = False,
    version: Annotated[
        str | None,
        typer.Option(help="Resume with this version: active, latest, default or a number. By default, the run's own."),
    ] = None,
    wait: Wait = True,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Run a run that has ended again: what did not complete, all of it, or a step and what follows it."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text, running  # noqa: PLC0415
        from dalsegno.model.runs import RestartFrom  # noqa: PLC0415

        where = RestartFrom(start) if start in ("incomplete", "beginning") else RestartFrom.STEP
        step = start if where is RestartFrom.STEP else None
        before = orchestrator.run(run)
        chosen = _chosen_version(version, is_latest=latest)
        if chosen is None:
            blueprint = orchestrator.versions.blueprint(before.workflow_id, before.version)
        else:
            blueprint = orchestrator.versions.named(before.workflow_id, chosen)
        given = _params(params, blueprint)
        seen = orchestrator.last_event(before.id)
        started = orchestrator.restart(
            before.id, restart=where, step=step, params=given, skip=skip or (), version=chosen
        )
        newest = orchestrator.versions.newest(before.workflow_id)
        if chosen is None and (said := run_text.newer_version(started, newest)):
            print(said, file=sys.stderr, flush=True)
        if not wait:
            _leave_to_others(orchestrator, started, as_json=json)
            return
        if not json:
            print(run_text.submitted(started), flush=True)
        _finish(orchestrator, running.run_here(orchestrator, started, is_quiet=json, after=seen), as_json=json)


def _chosen_version(version: str | None, *, is_latest: bool) -> str | None:
    from dalsegno.errors import UserError  # noqa: PLC0415

    if is_latest and version not in (None, "latest"):
        raise UserError(f"--latest and --version {version} name two versions.", hint="Give one of them.")
    return "latest" if is_latest else version


def pause(run: RunName, json: Json = False, settings: SettingsFile = None) -> None:
    """Let no new step of a run begin; those that run go on."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text  # noqa: PLC0415

        show(orchestrator.pause(run), lambda each: run_text.run_line(each, orchestrator.clock()), as_json=json)


def resume(
    run: RunName, step: Step = None, iteration: Iteration = "", json: Json = False, settings: SettingsFile = None
) -> None:
    """Let a paused run go on, or a step that a breakpoint holds."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        from dalsegno.cli import run_text  # noqa: PLC0415

        found = orchestrator.resume(run, step, iteration=iteration)
        show(found, lambda each: run_text.run_line(each, orchestrator.clock()), as_json=json)


def versions(
    workflow: WorkflowId,
    activate: Annotated[
        str | None, typer.Option(metavar="VERSION", help="make this version the active one: a number, or latest")
    ] = None,
    deactivate: Annotated[bool, typer.Option("--deactivate", help="let no version be active")] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="FROM TO", help="print what differs between two versions: the definition and its files"),
    ] = None,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """List the versions of a workflow with their files, newest first."""
    from dalsegno.cli import run_text  # noqa: PLC0415

    if not (diff or activate is not None or deactivate):
        with opened_run_reader(settings, as_json=json) as reader:
            show(reader.versions.of(workflow), run_text.versions, as_json=json)
        return
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        if diff is not None:
            show(orchestrator.versions.diff(workflow, *diff), run_text.version_diff, as_json=json)
            return
        if activate is not None:
            orchestrator.versions.activate(workflow, activate)
        else:
            orchestrator.versions.deactivate(workflow)
        show(orchestrator.versions.of(workflow), run_text.versions, as_json=json)


def delete(workflow: WorkflowId, json: Json = False, settings: SettingsFile = None) -> None:
    """Delete a workflow none of whose runs is open; pushed again, its numbers go on."""
    with opened_orchestrator(settings, as_json=json) as orchestrator:
        orchestrator.versions.delete(workflow)
        show({"deleted": workflow}, lambda found: f"Deleted {found['deleted']}.", as_json=json)


def work(settings: SettingsFile = None) -> None:
    """Run whatever is open, in this process, such as runs whose process was killed."""
    with opened_orchestrator(settings) as orchestrator:
        from dalsegno.cli import run_text  # noqa: PLC0415
        from dalsegno.model.runs import RunStatus  # noqa: PLC0415

        states = [status.value for status in RunStatus if not status.is_final]
        found = orchestrator.list_runs(status=states, limit=1000)
        if not found:
            print("Nothing is left to do.")
            return
        for each in found:
            print(run_text.run_line(each, orchestrator.clock()), flush=True)
        try:
            orchestrator.work()
        except KeyboardInterrupt:
            print("Left what is open to the next process.", file=sys.stderr)
            raise typer.Exit(LEFT) from None
        for each in found:
            print(run_text.run_line(orchestrator.run(each.id), orchestrator.clock()))
