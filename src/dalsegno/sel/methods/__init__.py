"""The methods, fields and constructors that expressions may use: tables of ours, and nothing beyond them.

registry   the tables, and how arguments are checked
strings    String            formats   String.format
numbers    Long, Integer, Double, Boolean, Math, UUID, System, Arrays
maps       Map and params
dates      DateTime, DateTimeZone, DateTimeFormat, Days
util       Util
"""
