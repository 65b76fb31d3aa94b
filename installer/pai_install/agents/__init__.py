"""Programs that run in the cluster: job recorder, GPU meter, and HiveD bridge. Roles and add-ons install them.

They run with Python 3.9 and its standard library, so they import nothing outside this package.
"""
