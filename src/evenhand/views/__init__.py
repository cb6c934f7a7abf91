"""What people see: terminal screens, matplotlib's pictures, the page.

What belongs here turns plain values, counts among them, into text, pictures and HTML. What does
not: anything that reads rows, fits or decides.
"""
