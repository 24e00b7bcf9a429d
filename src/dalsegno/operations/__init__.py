"""What a user can do with workflows: one method per verb, called by the command line and from Python alike."""
