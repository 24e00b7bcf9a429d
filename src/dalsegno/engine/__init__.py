"""Who does it, when: claims steps that are ready, runs them, and tells ``plan`` what happened. Nothing clever.

engine        the loop: waits, saves, hands out
node          this process among others: leases, and those that are gone
ledger        what this process remembers of runs; records: what goes in and out
  run_transaction   one transaction: carries out what ``plan`` decides; pending_writes: what it saves
  admitting         runs as a whole; iterations: loops; checkpoint_moves: commits; claiming, permits: what may run now
worker        what a claimed step does next, by its kind; jobs: a job from its start to its end
scopes        which parameters a step sees; starting: those of a new run; blueprints: graphs of workflows
ports         what the engine asks of the layers above it
"""
