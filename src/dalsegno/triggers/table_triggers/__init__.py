"""Runs when tables have changes that the workflow has not processed."""
