"""A small asynchronous parameter-server trainer in numpy, run as the process of a TFJob's tasks.

``python -m mews.systems.kod2.trainer`` reads TF_CONFIG and is a server, a worker (a chief, too) or an evaluator
accordingly. Servers hold a part of the parameters each, apply every gradient the moment it comes and answer that worker
only (the KOD2 paper, section 2.2); workers come and go as they like. Without servers each worker trains by itself.
"""
