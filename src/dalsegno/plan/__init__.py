"""What happens next: pure decisions over the model, without a database, a table or the clock.

increments  a table's history and a consumer's checkpoint → the range to capture next, or why there is none
forecast    what a capture will cost against a full scan and a lookback, and what will expire when
signals     which signals will do for those who wait

When a trigger starts a run is decided in ``triggers``: each kind has a module ``plan``.
"""
