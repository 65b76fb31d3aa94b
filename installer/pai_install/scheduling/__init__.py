"""Virtual clusters and jobs as values that no scheduler changes: amounts, kinds, priorities, admission."""
