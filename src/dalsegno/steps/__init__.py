"""How a step runs: one file per type, behind one small contract (``contract``).

Nothing here knows of workflows, the store or what comes next. A type of your own is a class with the same three
methods, named by an entry point of the group ``dalsegno.steps``.
"""
