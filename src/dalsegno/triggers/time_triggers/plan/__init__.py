"""Which times are due (``schedule``), and which of them become runs (``firing``)."""
