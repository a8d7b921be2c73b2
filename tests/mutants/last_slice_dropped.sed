# FILE: engine/rules.h
# RULE: the last run, up to STOP, is charged
s/^\tif (!tail_lost)$/\tif (0)/
