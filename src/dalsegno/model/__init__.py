"""What things are: frozen data without I/O, shared by every other package."""
