"""One-line faults in drawn functions of a room: does a test of that room's folder fail?

``python -m tests.mutate ROOM`` plants them in copies of the checkout, one at a time.
"""
