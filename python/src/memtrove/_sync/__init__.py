# Made by scripts/generate.py. Do not edit.
"""The client, once: this half waits, the other one is made from it."""
