"""Stand-in."""


def render(summary):
    """Stand in."""
    return "<html>"
