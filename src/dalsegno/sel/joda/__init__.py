"""Dates and times as Joda-Time has them, which is what SEL offers.

calendar   the fields of a local time in milliseconds: year, week, hour and the like
zones      offsets from UTC, and what to do where a local time does not exist or exists twice
moments    DateTime, Property and Days
patterns   yyyy-MM-dd and the like: printing
parsing    the same: reading
words      "1 day and 2 hours"

Python's own datetime ends at the year 9999 and knows no week years, so times are kept as Joda keeps them: milliseconds
since 1970 and a zone.
"""
