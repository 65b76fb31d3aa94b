"""What can be installed: one file per part says everything about it; everything else is derived from the parts."""
