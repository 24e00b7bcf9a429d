"""Runs that start by signals.

Whoever announces a signal leaves it with the triggers that want it. Which of them join is decided in ``plan``;
here it is done, in three steps that may be repeated: signals are put together in one transaction, their run is started
with a key that follows from them, and they are forgotten. Whoever dies in between, or does the same at the same time,
starts no second run, and no signal is part of two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.records import OpenRun
from dalsegno.engine.scopes import Scopes
from dalsegno.engine.starting import new_run
from dalsegno.engine.step_signals import wanted_by
from dalsegno.errors import DalsegnoError, ParamError, UserError
from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.signals import Signal
from dalsegno.spec.params.evaluation import Scope
from dalsegno.store import Store, signal_subscriptions, signals, triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers.engine import Start, TriggerContext, TriggerStarter, Watcher
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.signal_triggers.plan import Joining, group_of, key_of_join, key_of_value, named_triggers, to_join

log = logging.getLogger(__name__)

#: How soon a signal that was announced starts a run.
_LOOK_SECONDS = 0.2
#: What stands for a run that nobody has started yet.
_NO_RUN = ""


@dataclass(frozen=True)
class _Begin:
    """A run that is to be started."""

    initiator: Mapping[str, Any]
    #: What equal values of begin one run only, if the trigger says so.
    once: str | None = None
    fault: UserError | None = None


class SignalStarter(TriggerStarter[SignalTrigger]):
    def register(
        self,
        connection: Connection,
        workflow_id: str,
        wanted: Sequence[SignalTrigger],
        registered: Mapping[str, Row],
        now: datetime,
    ) -> None:
        by_name = named_triggers(wanted)
        names = {signal for trigger in wanted for signal in trigger.definitions}
        # Whoever announces a signal waits until that is settled.
        signals.hold(connection, names | signal_subscriptions.subscribed(connection, workflow_id))
        rows = dict.fromkeys(by_name, triggers.NewTrigger())
        replaced = triggers.replace(connection, workflow_id, SignalTrigger.kind, rows, registered)
        for name in replaced.removed:
            signal_subscriptions.unsubscribe(connection, workflow_id, name)
        for name in replaced.added:
            signal_subscriptions.subscribe(connection, workflow_id, name, by_name[name].definitions)

    def watcher(self, context: TriggerContext) -> Watcher:
        found = SignalTriggers(context.store, context.active, context.start, context.scopes)
        return SignalWatcher(found, context.clock)


@dataclass(frozen=True)
class SignalWatcher:
    triggers: SignalTriggers
    clock: Callable[[], datetime]

    def look(self) -> float:
        self.triggers.fire(self.clock())
        return _LOOK_SECONDS


class SignalTriggers:
    def __init__(self, store: Store, active: Callable[[str], Blueprint | None], start: Start, scopes: Scopes) -> None:
        self.store = store
        #: The version of a workflow that is active.
        self.active = active
        self.start = start
        self.scopes = scopes

    def fire(self, now: datetime) -> None:
        """Start what signals have been announced for."""
        with self.store.database.reading() as connection:
            told = signal_subscriptions.told(connection)
        for row in told:
            try:
                self._fire(row, now)
            except DalsegnoError as error:
                # Its signals wait. The other triggers must not wait for it.
                log.warning("signals for %s have come, but it cannot be started: %s", row["workflow_id"], error)

    def _fire(self, row: Row, now: datetime) -> None:
        blueprint = self.active(row["workflow_id"])
        trigger = named_triggers(blueprint.workflow.triggers_of(SignalTrigger)).get(row["name"]) if blueprint else None
        if blueprint is None or trigger is None:
            # Another version has become active since we looked: its triggers are watched by now.
            return
        joining = self._joining(row, blueprint, trigger, now)
        while joining and (joins := self._join(row, joining, now)):
            for key, found in joins.items():
                self._begin(row, blueprint, trigger, key, found, now)

    def _joining(self, row: Row, blueprint: Blueprint, trigger: SignalTrigger, now: datetime) -> Joining | None:
        """None: nobody can tell what the trigger wants; the next signal is the next attempt."""
        scope = self._scope(blueprint, _initiator(row["name"], ()), now)
        try:
            wanted = {name: wanted_by(dependency, scope) for name, dependency in trigger.definitions.items()}
        except UserError as error:
            log.warning("signals for %s have come, but what it waits for has no value: %s", row["workflow_id"], error)
            with self.store.database.writing() as connection:
                triggers.change(connection, row, next_at=None)
            return None
        return Joining(wanted, trigger.join_keys)

    def _join(self, row: Row, joining: Joining, now: datetime) -> dict[str, list[Signal]]:
        """Put together what belongs together; by key, the signals of those whose run may not have been started yet."""
        with self.store.database.writing() as connection:
            # First of all: what arrives from here on is looked at the next time.
            if not triggers.change(connection, row, next_at=None):
                return {}
            new = signal_subscriptions.new_arrivals(connection, row)
            for group in self._grouped(connection, row, joining, new):
                self._join_group(connection, row, joining, group)
            joins = signal_subscriptions.joins(connection, row)
            if joins or len(new) == signal_subscriptions.PAGE:
                # It stays due until that is done.
                triggers.change(connection, row, next_at=now)
            return joins

    @staticmethod
    def _grouped(connection: Connection, row: Row, joining: Joining, new: Sequence[Signal]) -> list[str]:
        """Let signals wait among those they may join; which groups these are."""
        groups: dict[str, None] = {}
        for signal in new:
            group = group_of(joining, signal)
            if group is None:
                signal_subscriptions.forget(connection, row, [signal])
            else:
                signal_subscriptions.put_into_group(connection, row, signal, group)
                groups[group] = None
        return list(groups)

    @staticmethod
    def _join_group(connection: Connection, row: Row, joining: Joining, group: str) -> None:
        is_more = True
        while is_more:
            waiting = [signal_subscriptions.in_group(connection, row, group, name) for name in joining.wanted]
            joins = to_join(joining, [signal for each in waiting for signal in each]).joins
            for join in joins:
                key = key_of_join(row["workflow_id"], row["name"], join)
                signal_subscriptions.join(connection, row, join.signals, key)
            is_more = len(joins) == signal_subscriptions.PAGE

    def _begin(
        self, row: Row, blueprint: Blueprint, trigger: SignalTrigger, key: str, found: Sequence[Signal], now: datetime
    ) -> None:
        """Start the run of a join, unless the trigger's condition does not hold; its signals are used up either way."""
        begin = self._decided(row["name"], blueprint, trigger, found, now)
        run_key: str | None = key
        if begin is not None and begin.once is not None:
            # It may be another one each time, such as a random one: so it is chosen once.
            with self.store.database.writing() as connection:
                value = key_of_value(row["workflow_id"], begin.once)
                run_key = signal_subscriptions.choose_run_key(connection, row, key, value)
        if begin is not None and run_key is not None:
            self.start(blueprint, run_key, begin.initiator, fault=begin.fault)
        with self.store.database.writing() as connection:
            signal_subscriptions.forget(connection, row, found)

    def _decided(
        self, name: str, blueprint: Blueprint, trigger: SignalTrigger, found: Sequence[Signal], now: datetime
    ) -> _Begin | None:
        """What the trigger says of these signals; None: they begin no run."""
        initiator = _initiator(name, found)
        scope = self._scope(blueprint, initiator, now)
        try:
            if trigger.condition is not None and not scope.is_true(trigger.condition):
                log.info("%s is not started by signals: %s does not hold", blueprint.workflow.id, trigger.condition)
                return None
            params = _params(trigger, scope)
            once = None if trigger.dedup_expr is None else _text(trigger.dedup_expr, scope)
        except UserError as error:
            return _Begin(initiator, fault=error)
        return _Begin({**initiator, "params": params}, once)

    def _scope(self, blueprint: Blueprint, initiator: Mapping[str, Any], now: datetime) -> Scope:
        """What a run that signals begin would see."""
        row = new_run(blueprint, run_id=_NO_RUN, number=0, run_params={}, initiator=initiator, now=now)
        return self.scopes.of_run(OpenRun(row, blueprint, 0, frozenset()), None, now)


def _initiator(trigger: str, found: Sequence[Signal]) -> dict[str, Any]:
    return {
        "type": "SIGNAL",
        "by": "dalsegno",
        "trigger": trigger,
        "signals": {signal.name: dict(signal.params) for signal in found},
        "signal_ids": {signal.name: signal.id for signal in found},
    }


def _params(trigger: SignalTrigger, scope: Scope) -> dict[str, Any]:
    inner = Scope(trigger.params, scope.context, {}, scope)
    params = {name: inner.own(name) for name in trigger.params}
    for name, param in params.items():
        if param.is_secret:
            raise ParamError(f"The parameter {name!r} of a trigger holds a secret, and what starts a run is stored.")
    return {name: param.value for name, param in params.items()}


def _text(expression: str, scope: Scope) -> str:
    definition = ParamDefinition(ParamType.STRING, expression=expression)
    return str(Scope({"dedup_expr": definition}, scope.context, {}, scope).own("dedup_expr").value)


STARTER = SignalStarter()
