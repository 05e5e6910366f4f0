"""Wire faces of the chassis core: parse, call the core, render. No rules of their own."""
