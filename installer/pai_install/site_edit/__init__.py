"""Changes of a site's file by command: text -> text. Comments, order, quotes and indentation of all else stay. Pure."""
