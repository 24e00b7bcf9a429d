"""What a user can do. ``facade.Operations`` is the front door; the command line and the server call nothing else.

facade          the namespaces, each imported when it is first used
workflows, runs, captures, checkpoints, tables, triggers, signals, templates, audits, admin
                one method per verb; results are frozen dataclasses
context         what every verb needs, opened on demand; refuses callers who lack the role
roles           verb → least role
callers         who calls, where no request says so
pages           lists with cursors
results         result types that are made further down
machinery       versions, scopes, ledger and engine: what verbs of runs are done with
run_control, run_reader, pushing, template_finder, …   how verbs are done
service         what goes on by itself, in one process or in many
"""
