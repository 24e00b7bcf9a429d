"""What waits (``unprocessed``), whether it starts a run (``decisions``), and whether it would have (``simulation``)."""
