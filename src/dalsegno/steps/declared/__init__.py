"""The ``Incremental`` step: a table that is declared by its SELECT. One step captures, writes and commits.

params       what the author writes
sources      the tables that the SELECT reads, and the target, as the catalogs have them
views        the views that the SELECT reads, replaced by their own queries
dimensions   which sources are pinned, and to which snapshot
facts        what the author states, up to where it was checked, and the check of this run
refreshing   what changed + the SELECT → the statements of this run, and why these
functions    the same for a table that a function of Python declares; ``calling`` and ``function_job`` call it
costs        what each strategy would read and write now
deciding     the cheapest strategy that is right
runner       the step: capture, execute, commit
"""
