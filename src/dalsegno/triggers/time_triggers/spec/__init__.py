"""Time triggers in texts: ``cron`` reads lines, ``schedules`` says what they mean, ``language`` reads triggers."""

from __future__ import annotations

from dalsegno.triggers.time_triggers.spec.language import TimeLanguage

LANGUAGE = TimeLanguage()
