"""From text to the model: what people write, read strictly, with the line and column of whatever is wrong.

workflows    the way in: a workflow's text → its definition, or every problem at once
documents    YAML and JSON → a tree that knows its places; composing, scalars, json_text, wrapped: how
fields       reading the fields of a mapping; problems gathers what is wrong
reading      the tree → the model, in every dialect
checks       what must hold of a workflow as a whole; what triggers need is in ``triggers``, by kind
captures     which steps capture what is new, and who commits it
canonical    the model → Maestro's JSON, which the store keeps
formatting   a text in the documented style; comments finds those that are kept
files        references to files in texts, such as ``$S3{…}``
durations, names  what these may be
schema       the JSON schema for editors
params       parameters: layers, values, references, secrets, loops
sel          expressions: the language, its values and its limits

Nothing here looks at a database, a table, a file or the clock.
"""
