"""The museum: public bugs of others, each with the mistake as one change of a component and the world that shows it."""
