"""Calls a function of a file with DataFrames, and leaves what it returns as a view in the session of ``SPARK_REMOTE``.

    python function_job.py FOLDER REQUEST ANSWER

FOLDER is that of the file. REQUEST is a JSON file: ``file``, ``text`` (its content), ``function``, ``relations``,
``view``. ANSWER gets ``{"error": …}`` if the function is not as it should be, or ``{"platform": …}`` if Spark is not
there. What the function itself raises goes to standard error.
"""

from __future__ import annotations

# Nothing else may be imported before ``sys.path`` is right: beside this file are modules that are called like others.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A file that asks for a refresh when it is imported would wait for itself.
CALLS_FUNCTIONS = True


def main() -> None:
    folder, request_file, answer_file = sys.argv[1:4]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    import json  # noqa: PLC0415

    from dalsegno.model.outcomes import FailureKind  # noqa: PLC0415
    from dalsegno.spark.failures import explained  # noqa: PLC0415

    with open(request_file, encoding="utf-8") as opened:  # noqa: PTH123
        request = json.load(opened)
    answer = {}
    try:
        if error := _called(request):
            answer = {"error": error}
    except Exception as error:
        failure = explained(error)
        if failure.kind is FailureKind.PLATFORM:
            answer = {"platform": failure.message}
        raise
    finally:
        if answer:
            with open(answer_file, "w", encoding="utf-8") as opened:  # noqa: PTH123
                json.dump(answer, opened)


def _called(request: dict[str, Any]) -> str:
    """What is wrong with the function; empty if its result is there."""
    import inspect  # noqa: PLC0415

    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql.connect.dataframe import DataFrame  # noqa: PLC0415

    name, where = request["function"], request["file"].rpartition("/")[2]
    found = getattr(_module(request), name, None)
    # One that is decorated is called as it was written.
    function = getattr(found, "function", found)
    if not callable(function):
        return f"{where} has no function {name!r}."
    spark = SparkSession.builder.getOrCreate()
    frames = [spark.sql(f"SELECT * FROM {each}") for each in request["relations"]]
    try:
        inspect.signature(function).bind(*frames)
    except TypeError as error:
        return f"{name} must take one argument for each of its {len(frames)} sources: {error}."
    result = function(*frames)
    if not isinstance(result, DataFrame):
        return f"{name} must return a DataFrame, and returned {type(result).__name__}."
    result.createOrReplaceTempView(request["view"])
    return ""


def _module(request: dict[str, Any]) -> Any:
    """The file as a module; functions that it gives Spark are sent by value, as Spark cannot import it."""
    import types  # noqa: PLC0415

    from pyspark import cloudpickle  # noqa: PLC0415

    name = request["file"].rpartition("/")[2].removesuffix(".py")
    module = types.ModuleType(name)
    module.__file__ = request["file"]
    sys.modules[name] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    exec(compile(request["text"], request["file"], "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


if __name__ == "__main__":
    main()
