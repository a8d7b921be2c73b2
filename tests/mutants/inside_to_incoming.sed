# FILE: engine/rules.h
# RULE: a sample between OUT and IN ends the slice of the thread that left
s/int own_behind = .*/int own_behind = 0;/
