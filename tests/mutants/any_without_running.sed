# FILE: engine/rules.h
# RULE: a sample in the middle of a run ends the slice of the thread that runs, not only of those that ran
s/^\tif (!own_behind)$/\tif (!own_behind \&\& (rules->before || rules->inside))/
