"""Steps that run SQL or a program on Spark."""
