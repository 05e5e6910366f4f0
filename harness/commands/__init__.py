"""What the commands of the command line do; each module is imported only when its command runs."""
