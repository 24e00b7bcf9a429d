"""What went wrong in Spark, in one sentence, and whose fault it was."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.hints import Verb, action, as_sentence
from dalsegno.model.outcomes import FailureKind
from dalsegno.storage_problems import advice_for, storage_problem

#: Classes of SQLSTATE that do not speak of the statement: connections, conflicts, resources, the system.
_PLATFORM_STATES = ("08", "40", "53", "57", "58", "XX")
#: The class of what is wrong with the statement itself, such as its syntax or a name in it: trying again is no use.
_FATAL_STATE = "42"
#: Likewise, of other classes: what is to be written and the table have not the same columns; Spark's planner fails.
_FATAL_CONDITIONS = ("INCOMPATIBLE_DATA_FOR_TABLE", "INSERT_COLUMN_ARITY_MISMATCH", "MISSING_ATTRIBUTES")
_PLATFORM_CONDITIONS = ("INVALID_HANDLE", "INVALID_CURSOR")
_PLATFORM_STATUSES = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "CANCELLED")
#: What Java and Iceberg say, without a SQLSTATE, where the same statement may succeed next time.
_PLATFORM_WORDS = (
    "CommitFailedException",
    "ExecutorLostFailure",
    "FetchFailed",
    "No space left on device",
    "OutOfMemoryError",
    "SQLITE_BUSY",
    "ServiceUnavailableException",
    "java.net.",
)
#: Classes of SQLSTATE that wrap what a file system said.
_FILE_STATES = ("KD", "XX")
_CANCELLED = "OPERATION_CANCELED"
_SYNTAX = "PARSE_SYNTAX_ERROR"
#: What the client raises where Spark could not read or resolve a statement.
_REFUSALS = ("AnalysisException", "ParseException")
_HINTS = {
    "TABLE_OR_VIEW_NOT_FOUND": "Name tables as catalog.namespace.table. "
    + as_sentence(action("These exist", Verb.LIST_TABLES)),
    "CANNOT_MODIFY_STATIC_CONFIG": "It is fixed when Spark starts: set it under [spark.conf], or submit the step.",
    "CANNOT_MODIFY_CONFIG": "It is fixed when Spark starts: set it under [spark.conf], or submit the step.",
}


@dataclass(frozen=True)
class Failure:
    kind: FailureKind
    #: Spark's error class and first sentence.
    message: str
    hint: str | None
    #: All that Spark said, but for Java's stack.
    details: str
    is_interruption: bool = False
    #: Spark refused the statement before it executed anything of it.
    is_refused: bool = False
    #: It could not even be read.
    is_syntax: bool = False


def explained(error: Exception) -> Failure:
    """What an exception of the Spark Connect client means."""
    condition = _told(error, "getCondition") or ""
    state = _told(error, "getSqlState") or ""
    status = _status(error)
    text = str(error).partition("JVM stacktrace:")[0].strip()
    if not condition and status in _PLATFORM_STATUSES:
        message = f"The Spark server cannot be used: {status}{_detail(text)}."
        return Failure(FailureKind.PLATFORM, message, as_sentence(action("See whether it runs", Verb.SHOW_SPARK)), text)
    first = text.partition("\n")[0] or type(error).__name__
    is_platform = (
        condition.startswith(_PLATFORM_CONDITIONS)
        or state.startswith(_PLATFORM_STATES)
        or (not state and any(word in text for word in _PLATFORM_WORDS))
    )
    # A statement that Spark objects to may quote anything.
    problem = storage_problem(text) if not state or state.startswith(_FILE_STATES) else None
    is_certain = problem is not None or state.startswith(_FATAL_STATE) or condition.startswith(_FATAL_CONDITIONS)
    return Failure(
        FailureKind.FATAL if is_certain else FailureKind.PLATFORM if is_platform else FailureKind.USER,
        first if problem is None else f"{problem.problem.capitalize()}. Spark says: {first}",
        _HINTS.get(condition.partition(".")[0]) if problem is None else advice_for(problem, None),
        text,
        is_interruption=condition == _CANCELLED,
        is_refused=is_certain and problem is None and type(error).__name__ in _REFUSALS,
        is_syntax=condition == _SYNTAX,
    )


def _told(error: Exception, name: str) -> str | None:
    answer = getattr(error, name, None)
    return answer() if callable(answer) else None


def _status(error: Exception) -> str:
    # From an error of PySpark, or from one of gRPC's own.
    code = _told(error, "getGrpcStatusCode") or _told(error, "code")
    return getattr(code, "name", "")


def _detail(text: str) -> str:
    """gRPC wraps what it has to say into the description of an object."""
    _, found, rest = text.partition('details = "')
    return f" ({rest.partition(chr(34))[0]})" if found else ""
