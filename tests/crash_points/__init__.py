"""Every crash point of every reconfiguration: kill each component at each line of the journal, start it anew, and see
that no GPU is lost, none moves in use, and every pod ends or says why. ``make crash-points`` tries them all."""
