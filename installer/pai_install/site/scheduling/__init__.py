"""Virtual clusters as a site's files say them: which section rules, HiveD's cells, and what is wrong. Pure."""
