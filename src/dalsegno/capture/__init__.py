"""Captures: one method per verb. The command line, the Python API and the steps of workflows call the same ones.

lake          the verbs, and who does them
capturing     the straight path of a capture: range → record → pin → change table → ready
chosen_names  change tables that users named
changes       what a capture hands over in Python
consumers     their names
details       what a capture holds: files, rows, bytes, partitions, ranges
queries       the SQL that tells what happened to rows
views         a view of the changed rows, or of the range itself
renames       checkpoints of tables that had another name
planning      the same decision, shown instead of done
rebuilding    checkpoints read back from the targets
checking      what a catalog lets us do
"""
