# FILE: engine/rules.h
# RULE: where SWITCH_OUT is missing, the switch inside which the trigger fired comes after the sample
s/if (rules->inside \&\& rules->per_switch \&\& !own_behind)$/if (0)/
