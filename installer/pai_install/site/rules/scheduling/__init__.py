"""Virtual clusters in a site: the rules of their sections and of the cells of HiveD. Pure."""
