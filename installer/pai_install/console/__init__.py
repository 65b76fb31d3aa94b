"""The console: a web server in the cluster with OpenPAI's REST API and pages for people."""
