"""What happens next: pure decisions over the model, without a database, a table or the clock.

increments  a table's history and a consumer's checkpoint → the range to capture next, or why there is none
forecast    what a capture will cost against a full scan and a lookback, and what will expire when
schedule    a cron line in a time zone → when it is due
firing      which due times are started and which are missed, when exactly, and under which key
"""
