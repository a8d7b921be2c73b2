# FILE: engine/rules.h
# RULE: time without records is charged to nobody
s/csw_rule_charge(s, r, CSW_OWNER_LOST, t, CSW_RUN_CUT);/csw_rule_charge(s, r, s->owner, t, CSW_RUN_CUT);/
