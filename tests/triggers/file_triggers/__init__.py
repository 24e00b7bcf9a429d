"""Runs when a file appears or is written anew: a kind of trigger as somebody would add it."""
