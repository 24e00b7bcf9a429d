"""Whether a target holds what its workflow should have made of the very snapshots that its runs consumed.

``history`` finds what each run consumed and which state of the target it left; ``steps`` evaluates the workflow's SQL
as the engine would; ``oracles`` knows the independent queries that say what a target should hold; ``recomputation``
executes either on clones; ``comparison`` compares; ``auditing`` puts them together and looks for the first run that
went wrong.
"""
