"""What happens next: pure decisions over the model, without a database, a table or the clock.

increments  a table's history and a consumer's checkpoint → the range to capture next, or why there is none
forecast    what a capture will cost against a full scan and a lookback, and what will expire when
advance     a flow and what happened to it → what follows; retries, restarts: what is run again
reports     what a report asks for first: a checkpoint to move, signals to look for
step_effects  what a step's new state means for workers, waiting steps and the run's history
run_ends    how a run ends, and why; admission: which runs begin
claims      which steps may be claimed within limits
signals     which signals will do for those who wait

When a trigger starts a run is decided in ``triggers``: each kind has a module ``plan``.
"""
