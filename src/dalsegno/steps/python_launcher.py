"""Runs what was pushed of a Python file as if it were the file: ``python python_launcher.py COPY FILE [ARGUMENT …]``.

``__file__``, ``sys.argv[0]``, tracebacks and the folder that modules are imported from are those of FILE, which may
have been edited since, or not be on this machine. It needs nothing but the standard library of any Python 3.
"""

from __future__ import annotations

# Nothing else may be imported before ``sys.path`` is right: beside this file are modules that are called like others.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def main() -> None:
    copy, file = sys.argv[1:3]
    sys.argv = [file, *sys.argv[3:]]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = file.rpartition("/")[0] or "/"

    import linecache  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    with open(copy, "rb") as opened:  # noqa: PTH123 - pathlib takes as long to import as all the rest
        source = opened.read()
    lines = source.decode("utf-8", "replace").splitlines(keepends=True)
    # Without a time, it is not compared with the file.
    linecache.cache[file] = (len(source), None, lines, file)
    ours = __file__

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename == ours:
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)

    # By default the lines of a traceback are read from the file, which may have others now.
    sys.excepthook = show
    namespace = sys.modules["__main__"].__dict__
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]
    namespace.update(__file__=file, __doc__=None, __cached__=None, __spec__=None)
    exec(compile(source, file, "exec", dont_inherit=True), namespace)  # noqa: S102 - it is the step's own code


if __name__ == "__main__":
    main()
