"""Parameters: from what was written to the values that a step is given. No I/O, no clock.

    layers of definitions  ──merging──▶  definitions  ──evaluation──▶  parameters  ──outputs──▶  parameters
    (defaults, workflow, run, step)      one per name                  with values               after the job

Who runs workflows uses it so:

    definitions = workflow_definitions(…)                     when a run begins
    found = Scope(definitions, context).evaluate()            to_stored(found.params) is what is remembered
    run = Scope(definitions, context, from_stored(…))         before each step: the run, as it was remembered
    found = Scope(step_definitions(…), …, run).evaluate()     the values for the job, and its secrets
    params = apply_outputs(found.params, outputs, context)    after the job

Nothing is evaluated before somebody asks for it: a ``Scope`` is a namespace that makes a value when its name is used,
looks up other steps only then, and asks the scope around it for what it does not know.

A value that a secret went into is marked, and so is all that is made of it. It is shown as asterisks, and stored as
such: where it is needed again, its definition is evaluated again.
"""
