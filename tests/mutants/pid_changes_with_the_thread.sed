# FILE: drivers/sim/models.c
# RULE: a switch between threads of one process changes no process id
# TEST: claims
/pid_change", NULL/,/}/s/PROCESS_ONLY(1)/EVERY(1)/
