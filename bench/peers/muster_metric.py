"""The line of a metric: prints a number of this program for muster-bench scale, which reads it."""


def metric(name, value, unit=""):
    """name is of letters, digits and "_.-/", unit one word. Call it on one rank, or on all where all ranks' values count."""
    print(f"muster-metric: {name} {float(value):.12g} {unit}\n", end="", flush=True)
