"""Steps that make an HTTP request, or start a job at a server and poll it."""
