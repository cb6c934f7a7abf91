"""What people see: terminal screens, matplotlib's pictures, the page.

What belongs here turns plain values into text, pictures and HTML. What does not: anything that
measures, fits or decides.
"""
