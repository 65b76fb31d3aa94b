"""Reports unhealthy machines and GPUs with cause and remedy: a collector, and pure verdicts on its evidence."""
