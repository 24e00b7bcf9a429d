"""The server: what a service answers over HTTP.

Closed by default: it listens on this machine alone, and all but ``/health`` and ``/ready`` needs a token. Requests call
the verbs of ``operations`` and nothing else, each in a thread of its own and with an orchestrator of its own: the core
is synchronous, and what an orchestrator remembers of runs is for one thread.
"""
