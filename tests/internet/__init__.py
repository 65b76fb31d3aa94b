"""A stand-in for the servers that components come from: real HTTPS on loopback, under the names of the real ones."""
