"""Are wrong components found? One-line faults in every room, planted one at a time; see ``__main__`` for the command.

Nothing here imports ``mews`` before a fault is planted: the main process forks a child for each, and the child imports
the changed text in its file's place (``planting``). No file of the tree is touched.
"""
