"""How a step runs: one file per type, behind one small contract (``contract``).

Nothing here knows of workflows or what comes next. Only the types about captures (``incremental``) use the store;
others record their work through what they are given. ``spec.step_types`` registers every type. A type of your own is a
class with the same three methods, named by an entry point of the group ``dalsegno.steps``.
"""
