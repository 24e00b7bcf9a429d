"""Runs by the clock: cron lines in a time zone."""
