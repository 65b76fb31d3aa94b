"""Every form of a report of findings: text, HTML, JUnit, Prometheus. JSON is each finding's own."""
