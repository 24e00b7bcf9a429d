"""Prove a declared table on the history of its own sources, before it is adopted. Nothing but clones is written.

``history`` finds the snapshots to replay. ``changes`` makes up what they do not show: late rows, deletes, updates,
NULLs. ``rehearsal`` runs the ``Incremental`` step itself over clones, with a store of its own. ``oracle`` compares the
target with the full SELECT. ``replay`` puts them together, ``adopting`` pushes what is proven.
"""
