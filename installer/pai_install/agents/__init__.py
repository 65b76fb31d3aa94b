"""Programs that run in the cluster: job recorder, GPU meter, HiveD bridge, and packet filter of groups.

Roles and add-ons install them. They run with Python 3.9 and its standard library, so they import nothing outside this
package.
"""
