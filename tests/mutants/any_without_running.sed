# FILE: engine/rules.h
# RULE: a sample in the middle of a run ends the slice of the thread that runs, not only of those that ran
s|^\tif (rules->before \|\| !s->switching)$|\tif (rules->before)|
