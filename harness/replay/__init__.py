"""Serves what a box once answered: a recording of ``mews conform --record``, or a DSP2043 mockup folder."""
