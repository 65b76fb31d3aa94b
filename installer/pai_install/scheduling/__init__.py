"""Virtual clusters and their schedulers: a pure compiler from the site's sections to Kubernetes objects."""
