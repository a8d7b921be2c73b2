# FILE: engine/slicer.c
# RULE: behind a switch a sample's TID is that of the thread that left, and moves nobody
s/if (!s->rules.before && (state->switching || state->switches))/if (0)/
