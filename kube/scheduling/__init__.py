"""The scheduler: queues, cycle, plugin points, profiles."""
