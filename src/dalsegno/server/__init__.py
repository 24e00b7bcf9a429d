"""The server: what a service answers over HTTP.

Closed by default: it listens on this machine alone, and all but ``/health`` and ``/ready`` needs a token. Requests call
the verbs of ``operations`` and nothing else, each in a thread of its own and with operations of its own: the core
is synchronous, and what operations remember of runs is for one thread.

listening       where it listens, and for what
connections     deadlines and limits for whoever connects; descriptors, peers
strict_http     requests that two readers could read differently are refused
authentication  who is let in
probes          what anybody may ask
api             what those with a token may ask; metrics
answers         errors, and headers that every answer has
log_limits      how many lines strangers can make it log
"""
