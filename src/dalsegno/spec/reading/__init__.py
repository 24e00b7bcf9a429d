"""Document → model. What is wrong is noted, never raised, so that all of it is told at once.

workflow      the document: its dialects, the workflow, what stands beside it
steps         jobs, subworkflows, loops; with transitions (the edges) and graph (what must hold of them)
params        parameters in both forms; with values (literals by type)
properties, triggers, signals, retries, tags
context       what is known and gathered meanwhile
"""
