"""The ``Incremental`` step: a table that is declared by its SELECT. One step captures, writes and commits.

params       what the author writes
sources      the tables that the SELECT reads, and the target, as the catalogs have them
refreshing   what changed + the SELECT → the statements of this run, and why these
runner       the step: capture, execute, commit
"""
