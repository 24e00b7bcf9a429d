"""The work of a SQL step behind captures: which statements are done, which one is in doubt, what is to be executed.

What is done is not executed again. What was begun, and of which nobody knows how it ended, is looked for in its target.
What the target cannot tell is not guessed: the step stops, and a person decides (``dalsegno resolve``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dalsegno.errors import DataError, UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg import evidence
from dalsegno.iceberg.evidence import Written
from dalsegno.model.full_refresh import replaces
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, StatementState, UnitState, WorkUnit
from dalsegno.plan.unfinished_work import in_doubt, ways_on
from dalsegno.spark.connect import Session
from dalsegno.spark.forms import Effect, Form, form_of
from dalsegno.steps.contract import Work, WorkLog
from dalsegno.steps.spark import executors
from dalsegno.steps.spark.done_statements import gone_because, last_done, lost_session_statement, newest_done
from dalsegno.steps.spark.full_refresh import with_emptying
from dalsegno.steps.spark.judging import InDoubt, Judge, NotExecuted
from dalsegno.steps.spark.params import Concluded
from dalsegno.steps.spark.session_variables import values_of
from dalsegno.steps.spark.target_checks import is_overwrite_static, is_temporary, refuse_static_overwrite
from dalsegno.steps.spark.targets import Names, Target, Targets, names_of, redefines
from dalsegno.steps.spark.unknown_writes import refuse_unknown_writes
from dalsegno.steps.stored_secrets import restored, without_secrets

Say = Callable[[str], None]


class SqlWork:
    """The unit of one SQL step, in one process."""

    def __init__(
        self,
        work: Work,
        log: WorkLog,
        template: str,
        texts: Sequence[str],
        *,
        is_idempotent: bool,
        say: Say,
        names: Names | None = None,
        is_static: bool = False,
        conf: Iterable[str] = (),
        decision: Mapping[str, Any] | None = None,
    ) -> None:
        self._work = work
        self._log = log
        self._template = template
        self._targets = Targets(work.settings, self._names_now)
        if replaces(work.captures):
            texts = with_emptying(texts, work, log.units(), self._targets.find)
        self._given = tuple(texts)
        self._decision = decision
        self._is_idempotent = is_idempotent
        #: The settings of Spark that the step makes.
        self._conf = tuple(conf)
        #: Whether INSERT OVERWRITE deletes all partitions, where no session can be asked.
        self._is_static = is_static
        self._say = say
        self._session: Session | None = None
        self._names = names
        #: Done, and not stored yet.
        self._done: dict[int, Statement] = {}
        #: Targets that were searched for writes that the store does not know of.
        self._looked_at: set[TableName] = set()
        stored = [without_secrets(text, work.secrets) for text in texts]
        self.unit = log.open(template, stored, decision)

    @property
    def texts(self) -> tuple[str, ...]:
        """The statements to execute: as they were when the work was begun."""
        secrets = self._work.secrets
        return tuple(
            restored(each.text, self._given[each.number - 1] if each.number <= len(self._given) else "", secrets)
            for each in self.unit.statements
        )

    def outputs_if_done(self) -> Mapping[str, Any] | None:
        """What the step returned, if all of it is done."""
        if self.unit.state is not UnitState.DONE:
            return None
        self._refuse_other_template()
        self._check_done()
        return self.unit.outputs

    def resume(self, session: Session | None, attached: int = 0) -> None:
        """Find out about the statement in doubt, unless it is the one that this session can be asked for.

        Afterwards every statement is planned or done, but for that one.
        """
        self._session = session
        begun = [each for each in self.unit.statements if each.state is StatementState.BEGUN]
        self._settle_all([each for each in begun if each.number != attached])
        if attached:
            return
        if not self._has(StatementState.DONE) and not self._has(StatementState.BEGUN):
            is_same = self.unit.template == self._template and self.unit.decision == self._decision
            if not is_same or len(self.unit.statements) != len(self._given):
                stored = [without_secrets(text, self._work.secrets) for text in self._given]
                self.unit = self._log.plan(self.unit, self._template, stored, self._decision)
            return
        self._refuse_other_template()
        self._check_done()
        self._check_session_statements()

    def is_done(self, number: int) -> bool:
        """Whether a statement that writes is not to be executed."""
        statement = self.unit.statement(number)
        return statement.state is StatementState.DONE and self._form(statement).effect.may_write

    def is_written(self, number: int) -> bool | None:
        """Find out about a statement that the server has lost, and that is not at work any longer.

        None: nobody can tell, and the step, which is idempotent, is to start over, from its first statement.
        """
        starts_over = self._settle(self.unit.statement(number))
        return None if starts_over else self.is_done(number)

    def is_session_statement(self, number: int) -> bool:
        """Whether a statement was executed for the session only, in front of one that is done: to be made again."""
        last = last_done(self.unit.statements)
        return number < last and self._form(self.unit.statement(number)).effect is Effect.SESSION

    def begin(self, number: int, executor: Mapping[str, Any]) -> None:
        """Record that a statement is about to be executed, with its target as it is before."""
        statement = self.unit.statement(number)
        form = self._form(statement)
        if not form.effect.may_write:
            return
        begun = self._begun(statement, form, executor)
        done, self._done = self._done, {}
        self.unit = self._log.change(self.unit, *done.values(), begun)

    def begin_all(self, executor: Mapping[str, Any]) -> None:
        """The same for all that is not done: they are executed out of our sight, one after the other."""
        begun: list[Statement] = []
        for each in self.unit.statements:
            form = self._form(each)
            if form.moves_names:
                self._names = None
            if each.state is StatementState.PLANNED and form.effect.may_write:
                begun.append(self._begun(each, form, executor))
        self.unit = self._log.change(self.unit, *begun)

    def is_in_cluster(self) -> bool:
        """Whether a driver executes statements that a cluster has put on a machine of its own."""
        begun = [each for each in self.unit.statements if each.state is StatementState.BEGUN]
        return any((each.executor or {}).get("deploy_mode") == "cluster" for each in begun)

    def note_driver_ended(self) -> None:
        """The driver has said how it ended, so nothing of it is at work any longer."""
        begun = [each for each in self.unit.statements if each.state is StatementState.BEGUN]
        self.unit = self._log.change(
            self.unit, *(replace(each, executor={**(each.executor or {}), "has_ended": True}) for each in begun)
        )

    def end_all(self, outputs: Mapping[str, Any]) -> None:
        for each in self.unit.statements:
            if each.state is StatementState.BEGUN:
                self._done[each.number] = replace(each, state=StatementState.DONE, done_at=self._log.now())
        self.finish(outputs)

    def _begun(self, statement: Statement, form: Form, executor: Mapping[str, Any]) -> Statement:
        target = self._target(form, statement.number)
        before = None
        if target is not None and form.overwrites:
            upto = self.unit.statements[: statement.number]
            is_static = is_overwrite_static(self._session, upto, is_static=self._is_static)
            refuse_static_overwrite(target, form, self.unit.name, statement.number, is_static=is_static)
        if target is not None and (target.metadata is not None or form.creates):
            before = evidence.state_of(target.metadata)
            self._refuse_newer_target(target, statement)
            self._note_after(target)
            self._refuse_unknown_writes(target)
        return replace(
            statement,
            state=StatementState.BEGUN,
            target=target.name.quoted if target else None,
            before=before,
            after=None,
            executor=executor,
            doubt=None,
            begun_at=self._log.now(),
        )

    def _target(self, form: Form, number: int) -> Target | None:
        """The table that a statement writes to; None if it is, or may be, none that we can ask."""
        earlier = [self._form(each) for each in self.unit.statements[: number - 1]]
        if not form.target or is_temporary(form.target, earlier):
            return None
        target = self._targets.find(form.target)
        keys = self._settings_made(number)
        return None if target is None or any(redefines(target.name.catalog, key) for key in keys) else target

    def _settings_made(self, number: int) -> list[str]:
        """The settings of Spark that the step makes before a statement."""
        return [*self._conf, *(self._form(each).setting for each in self.unit.statements[: number - 1])]

    def end(self, number: int) -> None:
        """Note that a statement was executed: stored with the next one, or at once where nobody could tell later."""
        statement = self.unit.statement(number)
        form = self._form(statement)
        if form.moves_names:
            self._names = None
        if form.variables:
            assert self._session is not None  # noqa: S101 - a statement was executed
            self._done[number] = replace(statement, variables=values_of(self._session, form.variables))
        if not form.effect.may_write:
            return
        done = replace(statement, state=StatementState.DONE, done_at=self._log.now())
        self._done[number] = done
        self.unit = replace(
            self.unit, statements=tuple(done if each.number == number else each for each in self.unit.statements)
        )
        if form.effect is Effect.UNKNOWN or (form.effect is Effect.UNSTAMPED and not form.is_idempotent):
            self.flush()

    def fail(self, number: int, *, is_certain: bool, is_syntax: bool) -> None:
        """A statement ended with an error. ``is_certain``: Spark refused it before it did anything."""
        statement = self.unit.statement(number)
        form = self._form(statement)
        if statement.state is not StatementState.BEGUN:
            self.flush()
        elif is_syntax or (is_certain and form.effect is not Effect.UNKNOWN):
            self._done[number] = _planned(statement)
            self.flush()

    def flush(self) -> None:
        done, self._done = self._done, {}
        if done:
            self.unit = self._log.change(self.unit, *done.values())

    def finish(
        self, outputs: Mapping[str, Any], conclude: Callable[[WorkUnit], Concluded] | None = None
    ) -> Mapping[str, Any]:
        """Record that all of it is done, and what it returns, to which ``conclude`` may add."""
        if conclude is None:
            concluded = Concluded({}, None)
        else:
            # It asks the targets: if they do not answer, what is done is known to be.
            self.flush()
            concluded = conclude(self.unit)
        done, self._done = self._done, {}
        found = {**concluded.outputs, **outputs}
        self.unit = self._log.change(
            self.unit, *done.values(), refresh=concluded.refresh, state=UnitState.DONE, outputs=found
        )
        return found

    def close(self) -> None:
        self._targets.close()

    # What happened before.

    def _settle_all(self, begun: Sequence[Statement]) -> None:
        """Of statements that were begun one after the other, all before one that was executed were executed, too."""
        for each in begun:
            if (each.executor or {}).get("session") != self._work.key and not self._is_written_elsewhere(each):
                executors.ensure_gone(self._work.settings, each.executor, self._work.machine)
        written = [each.number for each in begun[1:] if isinstance(self._judge.verdict(each), Written)]
        for each in begun:
            if each.number < max(written, default=0):
                self._set(each, StatementState.DONE)
            elif self.unit.statement(each.number).state is StatementState.BEGUN:
                self._settle(each)

    def _is_written_elsewhere(self, statement: Statement) -> bool:
        """Whether a statement is done of which another machine would have to say whether it is still at work."""
        is_elsewhere = executors.is_elsewhere(self._work.settings, statement.executor, self._work.machine)
        return is_elsewhere and isinstance(self._judge.verdict(statement), Written)

    def _settle(self, statement: Statement) -> bool:
        """Say of a statement that was begun that it is done, or planned; or stop. True: all are planned anew."""
        match self._judge.judge(statement, self._settings_made(statement.number)):
            case Written(snapshot_id):
                self._say(f"statement {statement.number} was executed: snapshot {snapshot_id} of {statement.target}")
                self._set(statement, StatementState.DONE, after=snapshot_id)
                return False
            case NotExecuted():
                self._set(statement, StatementState.PLANNED)
                return False
            case InDoubt(doubt):
                return self._start_over(statement, doubt)

    def _start_over(self, statement: Statement, doubt: str) -> bool:
        """Plan all statements anew, if that is harmless; otherwise a person has to decide."""
        if self._is_idempotent:
            self._say(f"statement {statement.number} may have been executed; the step is idempotent: starting over.")
            self._done.clear()
            self.unit = self._log.start_over(self.unit)
            return True
        self.unit = self._log.change(self.unit, replace(statement, doubt=doubt))
        capture_id = self.unit.key.captures[0]
        raise UserError(
            f"It is unknown whether statement {statement.number} ({self._form(statement).name}) of {self.unit.name} "
            f"was executed: {doubt}.",
            hint="Look at its target.",
            actions=[
                *in_doubt(capture_id, self.unit.key.step_id),
                action("Or undo all of it", Verb.UNDO, capture=capture_id),
            ],
        )

    def _set(self, statement: Statement, state: StatementState, after: int | None = None) -> None:
        if state is StatementState.PLANNED:
            self.unit = self._log.change(self.unit, _planned(statement))
            return
        changed = replace(statement, state=state, after=after, doubt=None, done_at=self._log.now())
        self.unit = self._log.change(self.unit, changed)

    def _refuse_other_template(self) -> None:
        if self.unit.template == self._template:
            return
        texts = [(each.text, given) for each, given in zip(self.unit.statements, self._given, strict=False)]
        changed = next((number for number, (old, new) in enumerate(texts, start=1) if old != new), None)
        where = f", beginning with statement {changed}" if changed else ""
        raise UserError(
            f"The SQL of {self.unit.name} has changed{where}. Run {self.unit.begun_by} has written rows of capture "
            f"{', '.join(self.unit.key.captures)} with the old SQL, so dalsegno does not know which rows are missing.",
            actions=ways_on(self.unit),
        )

    def _check_done(self) -> None:
        """What is done must still be there: the newest statement that is done says so for each target and branch."""
        for statement in newest_done(self.unit.statements):
            metadata = self._targets.load(TableName.of_quoted(statement.target or ""))
            if (because := gone_because(statement, self._judge.verdict(statement), metadata)) is not None:
                raise DataError(
                    f"Statement {statement.number} of {self.unit.name} is done, but {statement.target} no longer has "
                    f"what it wrote: {because}.",
                    actions=[
                        action("Undo what is left of it, and start again", Verb.UNDO, capture=self.unit.key.captures[0])
                    ],
                )

    def _check_session_statements(self) -> None:
        """What the session knew must be made again with the same values, or all of it must be undone."""
        lost = lost_session_statement(self.unit.statements)
        if lost is None:
            return
        if self._is_idempotent:
            self.unit = self._log.start_over(self.unit)
            return
        raise UserError(
            f"Statement {lost.number} ({self._form(lost).name}) of {self.unit.name} gave the session something that "
            "cannot be made again, so what follows it cannot be resumed.",
            actions=[action("Undo what was written, and start again", Verb.UNDO, capture=self.unit.key.captures[0])],
        )

    def _refuse_newer_target(self, target: Target, statement: Statement) -> None:
        """A target that has what is about to be written knows more than the store: an old copy was restored."""
        if target.metadata is None:
            return
        if (found := evidence.found_in(target.metadata, self.unit.id, statement.number)) is not None:
            doubt = f"{target.name} has snapshot {found} of it, but the store did not know"
            self.unit = self._log.change(self.unit, replace(statement, state=StatementState.BEGUN, doubt=doubt))
            raise DataError(
                f"{target.name} has snapshot {found}, which statement {statement.number} of "
                f"{self.unit.name} made, but the store does not know of it: was an older copy of it restored?",
                actions=in_doubt(self.unit.key.captures[0], self.unit.key.step_id)[:1],
            )

    def _refuse_unknown_writes(self, target: Target) -> None:
        if target.metadata is None or target.name in self._looked_at:
            return
        self._looked_at.add(target.name)
        refuse_unknown_writes(
            target.name,
            target.metadata,
            self._work.captures,
            self._log.known_units(),
            self._log.known_captures,
            self._targets.load,
        )

    def _note_after(self, target: Target) -> None:
        """A look at a target also tells which snapshots earlier statements made there."""
        for number, each in self._done.items():
            if target.metadata is not None and each.target == target.name.quoted and each.after is None:
                found = evidence.stamped(target.metadata, self.unit.id, number)
                self._done[number] = replace(each, after=next(iter(found), None))

    @property
    def _judge(self) -> Judge:
        return Judge(self._work.settings, self._targets, self.unit.id, self._say)

    def _names_now(self) -> Names | None:
        if self._names is None and self._session is not None:
            self._names = names_of(self._session)
        return self._names

    def _has(self, state: StatementState) -> bool:
        return any(each.state is state for each in self.unit.statements)

    @staticmethod
    def _form(statement: Statement) -> Form:
        return form_of(statement.text)


def _planned(statement: Statement) -> Statement:
    """A statement of which nothing was executed."""
    return Statement(statement.number, statement.text)
