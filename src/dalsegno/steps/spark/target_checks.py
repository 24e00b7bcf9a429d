"""Refusals before a statement is executed: what its target says against it."""

from __future__ import annotations

from collections.abc import Sequence

from dalsegno.errors import UserError
from dalsegno.model.work_units import Statement
from dalsegno.spark.connect import Session
from dalsegno.spark.forms import Form
from dalsegno.steps.spark.sessions import OVERWRITE_MODE
from dalsegno.steps.spark.targets import Target, partition_fields

#: Forms that give the session something that it finds by a name before it looks for tables.
_TEMPORARY = frozenset({"CREATE TEMPORARY VIEW", "CACHE TABLE"})


def refuse_static_overwrite(target: Target, form: Form, unit_name: str, number: int, *, is_static: bool) -> None:
    """A static overwrite deletes every partition that the new rows do not touch, unless it names a single one."""
    is_one = target.metadata is None or form.fixed_columns >= partition_fields(target.metadata)
    if is_one or not is_static:
        return
    raise UserError(
        f"Statement {number} of {unit_name} would delete every partition of {target.name} that the captured rows do "
        "not touch: Spark's mode of INSERT OVERWRITE is static here.",
        hint=f"Remove {OVERWRITE_MODE} from the step, or use INSERT INTO … REPLACE WHERE. To replace the whole "
        "table: TRUNCATE TABLE, then INSERT INTO.",
    )


def is_overwrite_static(session: Session | None, upto: Sequence[Statement], *, is_static: bool) -> bool:
    """Whether INSERT OVERWRITE deletes all partitions; ``is_static`` counts where no session can be asked."""
    if session is not None:
        return session.settings([OVERWRITE_MODE]).get(OVERWRITE_MODE, "static").lower() != "dynamic"
    # Of what is submitted, the text has to tell.
    return is_static or any(OVERWRITE_MODE.lower() in each.text.lower() for each in upto)


def is_temporary(target: tuple[str, ...], earlier: Sequence[Form]) -> bool:
    """Whether a name means what the session made by it before, and not a table of a catalog."""
    made = [each.target[-1].lower() for each in earlier if each.name in _TEMPORARY and each.target]
    return len(target) == 1 and target[0].lower() in made
