"""What a user can do: one method per verb. The command line and the Python API call the same ones.

lake        the verbs, and who does them
capturing   the straight path of a capture: range → record → pin → change table → ready
details     what a capture holds: files, rows, bytes, partitions, ranges
queries     the SQL that tells what happened to rows
planning    the same decision, shown instead of done
checking    what a catalog lets us do
"""
