# FILE: engine/table.h
# RULE: a row adds up
s/cell->sum += /cell->sum = /
