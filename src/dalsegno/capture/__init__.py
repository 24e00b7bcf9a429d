"""Captures: one function per verb. The command line, the Python API and the steps of workflows call the same ones.

lake          the verbs, thin
requests      what users write → a request: the one place for all interfaces; key_columns, consumers: parts of it
context       what the verbs work with; tables: catalogs, opened once
decisions     request + tables + checkpoints → for each table a range or a refusal
capturing     carries a decision out: range → record → pin → change table → ready
planning      shows a decision, and what it would cost
watching      what tables have that nobody has processed, looked at again and again
settling      commit, abandon, drop, clean
checkpoints   looked up and moved by hand; renames: of tables that had another name; rebuilding: from the targets
chosen_names  change tables that users named
changes       what a capture hands over in Python
details       what a capture holds: files, rows, bytes, partitions, ranges
queries       the SQL of what happened to each row
views         a view of the changed rows, or of the range itself
history_pins  what keeps unprocessed history from expiring
scratch       whole tables at a snapshot, to work with for a while
checking      what a catalog allows
"""
