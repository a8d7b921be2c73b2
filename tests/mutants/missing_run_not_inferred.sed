# FILE: engine/rules.h
# RULE: the record behind a sample inside a switch tells of a thread whose own records are missing
s/^\tcsw_rule_infer(rules, s, r, t, d, behind);/\t(void)behind;/
