"""Java's regular expressions in time that grows with the text and the pattern only.

syntax      a pattern → a program of few instructions
characters  its sets of characters
program     the instructions
machine     runs a program on all its paths at once (Thompson, Pike), so that no pattern can make it hang
matching    split and replaceAll

Python's own engine backtracks: (a+)+b takes years on forty letters. What cannot be matched in linear time,
backreferences, is refused; looking around is charged for.
"""
