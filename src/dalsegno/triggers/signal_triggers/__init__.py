"""Runs when signals are announced, alone or joined by keys."""
