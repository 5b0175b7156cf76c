"""The client, once: this half waits, the other one is made from it."""
