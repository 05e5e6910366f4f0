"""MIG: what each model can be divided into, the instances of one GPU as a value, and the rules that change it."""
