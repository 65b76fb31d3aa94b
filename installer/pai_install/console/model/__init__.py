"""The read model: objects of the cluster in memory, kept by watches. Lists and counts come from it."""
